"""The HTML of an estimator links to its page."""

from email.message import EmailMessage

import skbayes_sgld
from skbayes_sgld import _doc_link


def test_an_estimators_html_links_to_its_page(monkeypatch, tmp_path):
    """To the clone's own pages where they are built, else to the address that is published."""
    estimator = skbayes_sgld.SGLDOrdinalClassifier()
    page = "api/generated/skbayes_sgld.SGLDOrdinalClassifier.html"
    monkeypatch.setattr(_doc_link, "BUILT", tmp_path)
    assert f'href="{tmp_path.as_uri()}/{page}"' in estimator._repr_html_()
    monkeypatch.setattr(_doc_link, "BUILT", tmp_path / "none")
    published = EmailMessage()
    monkeypatch.setattr(_doc_link, "metadata", lambda name: published)
    assert estimator._get_doc_link() == ""
    published["Project-URL"] = "Source, https://source.example"
    published["Project-URL"] = "Documentation, https://docs.example/stable/"
    assert estimator._get_doc_link() == f"https://docs.example/stable/{page}"
    del published["Project-URL"]
    published["Project-URL"] = "Documentation, https://OWNER.example/"  # not filled in yet
    assert estimator._get_doc_link() == ""
