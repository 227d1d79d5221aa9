// What keyboards and screen readers need and the theme leaves out.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  document.querySelectorAll("pre > code").forEach((code) => { code.tabIndex = 0; });
  const mend = () => {
    document.querySelectorAll(".md-code__nav").forEach((nav, number) =>
      nav.setAttribute("aria-label", `Code block ${number + 1}`));
    document.querySelectorAll(".md-typeset__scrollwrap").forEach((wrap) => { wrap.tabIndex = 0; });
  };
  new MutationObserver(mend).observe(document.body, { childList: true, subtree: true });
  mend();
});
