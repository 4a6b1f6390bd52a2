"""The built documentation in headless Chromium, served on this machine."""

import functools
import http.server
import shutil
import threading

import pytest

from tests.test_site import pages, site  # noqa: F401 (a fixture)

pytestmark = pytest.mark.docs

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
FAULTS = """() => {
  const faults = [];
  for (const image of document.images)
    if (!image.complete || !image.naturalWidth) faults.push("image " + image.src);
  for (const table of document.querySelectorAll("article table")) {
    const around = table.parentElement;
    if (table.getClientRects().length && around.scrollWidth > around.clientWidth + 1)
      faults.push(`table of ${around.scrollWidth} in ${around.clientWidth} px: `
        + table.innerText.slice(0, 60).replace(/\\s+/g, " "));
  }
  for (const error of document.querySelectorAll("mjx-merror, .MathJax_Error"))
    faults.push("formula " + error.outerHTML.slice(0, 200));
  return faults;
}"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        """No line for each request."""


@pytest.fixture(scope="module")
def address(site):  # noqa: F811
    handler = functools.partial(Quiet, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip(
        "playwright.sync_api", reason="needs playwright: pip install playwright"
    )
    if not CHROMIUM:
        pytest.skip("needs Chromium on the path: apt-get install chromium")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield running
        running.close()


def test_no_page_has_a_broken_image_or_formula_or_a_table_cut_off(browser, address, site):  # noqa: F811
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    faults = []
    page.on("pageerror", lambda error: faults.append((page.url, str(error))))
    page.on("requestfailed", lambda request: faults.append((page.url, request.url)))
    page.on(
        "response",
        lambda answer: (
            answer.status >= 400 and faults.append((page.url, answer.status, answer.url))
        ),
    )
    for path in pages(site):
        page.goto(f"{address}/{path.relative_to(site)}", wait_until="load")
        if page.evaluate("() => Boolean(document.querySelector('.math'))"):
            page.wait_for_function("() => document.querySelector('mjx-container')")
        faults += [(str(path.relative_to(site)), fault) for fault in page.evaluate(FAULTS)]
    assert faults == []


def test_search_finds_a_method(browser, address):
    page = browser.new_page()
    page.goto(f"{address}/search.html?q=predict_interval")
    page.wait_for_selector("#search-results li a")
    found = page.eval_on_selector_all("#search-results li a", "links => links.map(a => a.href)")
    assert any("api/generated/skbayes_sgld.SGLDLinearRegression.html" in link for link in found)


def test_a_card_of_the_first_page_leads_to_the_quickstart(browser, address):
    page = browser.new_page()
    page.goto(f"{address}/index.html")
    page.click(".sd-card:has-text('Quickstart')")
    assert page.url == f"{address}/guide/quickstart.html"
