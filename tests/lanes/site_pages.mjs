// Every page of the site on a phone and a desktop: how wide it is, which text is cut off, which names
// and comments are torn and what axe finds. node site_pages.mjs MODULES CHROMIUM SITE light|dark [FOLDER of screenshots]
import { createRequire } from "node:module";
import { readdirSync } from "node:fs";
import { join } from "node:path";
const [modules, chromium, site, theme, shots] = process.argv.slice(2);
const puppeteer = createRequire(modules + "/")("puppeteer-core");
const browser = await puppeteer.launch({
  executablePath: chromium, headless: "shell", protocolTimeout: 600_000,
  // The search reads its index as from a server; without it the theme hides the field.
  args: ["--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"],
});
const problems = [];
const pages = [];
// 404.html belongs to a server: its addresses begin at the root.
const names = readdirSync(site, { recursive: true })
  .filter((name) => name.endsWith(".html") && name !== "404.html");
for (const width of [390, 1280]) {
  const page = await browser.newPage();
  page.on("pageerror", (error) => problems.push(`${page.url()}: ${error}`));
  page.on("console", (line) => line.type() === "error"
    && problems.push(`${page.url()}: ${line.text()}`));
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
  await page.setViewport({ width, height: 850, isMobile: width < 500, hasTouch: width < 500 });
  for (const name of names.sort()) {
    await page.goto(`file://${join(site, name)}`);
    const [scheme, needed, cut] = await page.evaluate(() => [
      document.body.dataset.mdColorScheme,
      document.documentElement.scrollWidth,
      [...document.querySelectorAll("article *")]
        .filter((part) => part.clientWidth > 1 && part.scrollWidth > part.clientWidth + 1
          && getComputedStyle(part).overflowX === "hidden")
        .map((part) => part.outerHTML.slice(0, 200)),
    ]);
    const torn = await page.evaluate(() => {
      const lines = (part) =>
        new Set([...part.getClientRects()].map((box) => Math.round(box.top))).size;
      const names = [...document.querySelectorAll("article td:first-child > code")]
        .filter((code) => /^\w+$/.test(code.textContent));
      const comments = document.querySelectorAll("article :is(.language-console, .language-sh) .c1");
      return [...names, ...comments].filter((part) => lines(part) > 1).map((p) => p.textContent);
    });
    await page.addScriptTag({ path: `${modules}/axe-core/axe.min.js` });
    const faults = await page.evaluate(async () =>
      (await axe.run({ preload: false, resultTypes: ["violations"] })).violations
        .map((fault) => [fault.impact, fault.id, fault.nodes[0].html.slice(0, 200)]));
    pages.push({ name, width, scheme, needed, cut, torn, faults });
    if (shots) {
      const file = `${name.replaceAll("/", "-")}-${width}-${theme}.png`;
      await page.screenshot({ path: join(shots, file) });
    }
  }
  await page.close();
}
console.log(JSON.stringify({ problems, pages }));
await browser.close();
