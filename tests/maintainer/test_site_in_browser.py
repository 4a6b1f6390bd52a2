"""The built documentation in headless Chromium, served on this machine."""

import functools
import http.server
import io
import shutil
import threading
import tomllib
from urllib.parse import quote

import pytest

import skbayes_sgld
from tests.maintainer.test_site import ESTIMATORS, ROOT, pages, site  # noqa: F401 (a fixture)

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
  for (const block of document.querySelectorAll("article :is(pre, mjx-container[display=true])"))
    if (block.getClientRects().length && block.scrollWidth > block.clientWidth + 1)
      faults.push(`block of ${block.scrollWidth} in ${block.clientWidth} px: `
        + block.innerText.slice(0, 60));
  for (const code of document.querySelectorAll("article .highlight pre"))
    if (!code.parentElement.querySelector("button.copybtn"))
      faults.push("no copy button: " + code.innerText.slice(0, 60));
  for (const error of document.querySelectorAll("mjx-merror, .MathJax_Error"))
    faults.push("formula " + error.outerHTML.slice(0, 200));
  return faults;
}"""
SCROLLED_TO = """id => {
  const top = document.getElementById(id).getBoundingClientRect().y;
  return 0 <= top && top < 700;
}"""
# Headings and signatures wider than their column, and headings that are broken within a word.
CUT = """() => {
  const faults = [];
  for (const head of document.querySelectorAll("article :is(h1, h2, h3, h4, h5, h6, dt.sig)")) {
    if (!head.getClientRects().length) continue;
    const range = document.createRange();
    range.selectNodeContents(head);
    const right = head.parentElement.getBoundingClientRect().right + 1;
    if (head.scrollWidth > head.clientWidth + 1 || range.getBoundingClientRect().right > right)
      faults.push("cut: " + head.innerText);
    if (head.tagName == "DT") continue;
    const texts = document.createTreeWalker(head, NodeFilter.SHOW_TEXT);
    while (texts.nextNode())
      for (const word of texts.currentNode.data.matchAll(/\\w+/g)) {
        range.setStart(texts.currentNode, word.index);
        range.setEnd(texts.currentNode, word.index + word[0].length);
        const lines = new Set([...range.getClientRects()].map(line => line.top));
        if (lines.size > 1) faults.push("broken: " + word[0]);
      }
  }
  if (document.documentElement.scrollWidth > document.documentElement.clientWidth)
    faults.push(`the page scrolls sideways, by ${document.documentElement.scrollWidth} px`);
  return faults;
}"""
# What a person types, and the pages of which one is to be the first result.
SEARCHED = {
    "negative binomial": "guide/counts.html",
    "overdispersion": "guide/counts.html",
    "prediction interval": "guide/intervals.html",
    "confidence interval": "guide/faq.html",
    "p-value": "guide/faq.html",
    "p value": "guide/faq.html",
    "PyPI": "guide/faq.html",
    "outliers": "guide/heavy_tails.html",
    "interaction": "guide/faq.html",
    "mixed model": "guide/faq.html",
    "random effects": "guide/faq.html",
    "pandas": "guide/faq.html",
    "groups": "guide/faq.html",
    "logistic regression": "api/generated/skbayes_sgld.SGLDLogisticRegression.html",
}


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


def test_no_page_has_an_error_a_broken_image_or_formula_or_anything_cut_off(browser, address, site):  # noqa: F811
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    faults = []
    page.on(
        "console",
        lambda said: said.type == "error" and faults.append((page.url, said.text)),
    )
    page.on("pageerror", lambda error: faults.append((page.url, str(error))))
    page.on(
        "requestfailed",
        lambda request: (
            # the icon of a page that the next one replaces
            request.failure != "net::ERR_ABORTED" and faults.append((page.url, request.url))
        ),
    )
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


def test_no_heading_is_cut_or_broken_on_a_telephone(browser, address, site):  # noqa: F811
    page = browser.new_page(viewport={"width": 390, "height": 844})
    faults = []
    for path in pages(site):
        page.goto(f"{address}/{path.relative_to(site)}", wait_until="load")
        faults += [(str(path.relative_to(site)), fault) for fault in page.evaluate(CUT)]
    assert faults == []


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_page_of_an_estimator_leads_with_its_example_and_folds_what_is_seldom_read(
    browser, address, name
):
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(f"{address}/api/generated/skbayes_sgld.{name}.html")

    def top(selector):
        return page.locator(selector).first.bounding_box()["y"]

    assert top("dt.sig") < top("article pre") < top("article figure img") < top("#parameters")
    assert top("#parameters") < top("#attributes") < top("#methods")
    assert page.locator("dt.sig a", has_text="[source]").first.is_visible()
    assert page.locator("dt.sig").first.bounding_box()["height"] < 130
    height = page.evaluate("() => document.documentElement.scrollHeight")
    assert height < 12_000, "a telephone shows 844 of them"


@pytest.mark.parametrize("name", ["predict", "diagnose", "set_params"])
def test_a_link_to_a_method_unfolds_its_entry(browser, address, name):
    page = browser.new_page()
    anchor = f"skbayes_sgld.SGLDLinearRegression.{name}"
    page.goto(f"{address}/api/generated/skbayes_sgld.SGLDLinearRegression.html#{anchor}")
    page.locator(f'[id="{anchor}"]').wait_for(state="visible")
    page.wait_for_function(SCROLLED_TO, arg=anchor)


@pytest.mark.parametrize("path", ["index.html", "gallery.html", "guide/counts.html"])
def test_a_figure_has_the_background_of_a_dark_page(browser, address, path):
    image = pytest.importorskip("PIL.Image", reason="needs Pillow, as Matplotlib does")
    page = browser.new_context(color_scheme="dark").new_page()
    page.goto(f"{address}/{path}")
    figures = page.locator("article img")
    for i in range(figures.count()):
        shown = image.open(io.BytesIO(figures.nth(i).screenshot())).convert("L")
        assert shown.getpixel((3, 3)) < 40, figures.nth(i).get_attribute("src")


def test_the_header_has_logo_version_and_repository(browser, address):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{address}/guide/faq.html")
    assert page.evaluate("() => document.querySelector('.navbar-brand img').naturalWidth") > 0
    shown = page.locator(".bd-header .version-switcher__button").first
    shown.get_by_text(skbayes_sgld.__version__).wait_for()
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    assert page.locator(f'.bd-header a[href="{urls["Source"]}"]').count() > 0


def test_the_header_has_whats_new_and_a_page_its_neighbours(browser, address):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{address}/guide/quickstart.html")
    page.locator(".bd-header").get_by_role("link", name="What's new").first.click()
    page.wait_for_url(f"{address}/changelog.html")
    page.goto(f"{address}/guide/quickstart.html")
    page.locator("a.right-next").click()
    page.wait_for_url(f"{address}/guide/is_this_for_me.html")
    page.locator("a.left-prev").click()
    page.wait_for_url(f"{address}/guide/quickstart.html")


def test_the_first_page_shows_code_its_output_and_a_picture_before_the_installation(
    browser, address
):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{address}/index.html")
    code = page.locator("article pre").first
    output = code.locator(".go").first
    picture = page.locator("article img").first
    top = [each.bounding_box()["y"] for each in (code, output, picture)]
    assert max(top) < 900, "in sight at once"
    assert max(top) < page.locator("#install").bounding_box()["y"]


def test_the_steps_of_the_quickstart_are_copied_without_prompts_and_outputs(browser, address):
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{address}/guide/quickstart.html")
    block = page.locator("div.highlight:has-text('load_cars')").first
    block.hover()
    block.locator("button.copybtn").click()
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert copied.splitlines()[0] == "import pandas as pd"
    assert copied.splitlines()[-1] == "print(X.iloc[[0, 32]])"


@pytest.mark.parametrize("words", SEARCHED)
def test_the_first_result_is_the_page_that_a_person_looks_for(browser, address, words):
    page = browser.new_page()
    page.goto(f"{address}/search.html?q={quote(words)}")
    page.wait_for_selector("#search-results li a")
    page.wait_for_function("() => !document.querySelector('#search-progress')?.innerText")
    page.locator("#search-results li a").first.click()
    page.wait_for_url(f"{address}/{SEARCHED[words]}*")


def test_a_card_of_the_first_page_leads_to_the_quickstart(browser, address):
    page = browser.new_page()
    page.goto(f"{address}/index.html")
    page.click(".sd-card:has-text('Quickstart')")
    assert page.url == f"{address}/guide/quickstart.html"
