"use strict";
// Texts come from models: they are only ever set as textContent, never as markup.
(() => {
  const PAGE = 48;
  const data = JSON.parse(document.getElementById("data").textContent);
  const form = document.querySelector(".filters");
  const list = document.querySelector(".images");
  const found = document.querySelector(".found");
  const pagers = [...document.querySelectorAll(".pager")];
  const flagNames = Object.fromEntries(data.filters.map((f) => [f.flag, f.name]));
  let page = 0;

  for (const image of data.images) {
    const answers = image.answers.flat().map((a) => `${a.label} ${a.raw}`);
    image.searched = [image.id, image.prompt, ...answers].join("\n").toLowerCase();
  }

  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };

  const groupsOf = (image) =>
    Object.entries(image.groups).flatMap(([name, values]) => values.map((v) => `${name}: ${v}`));

  const wanted = () => {
    const choice = Object.fromEntries(new FormData(form));
    const text = (choice.text || "").trim().toLowerCase();
    return data.images.filter(
      (p) =>
        (!choice.flag || p.flags.includes(choice.flag)) &&
        (!choice.variant || p.variant === choice.variant) &&
        (!choice.group || groupsOf(p).includes(choice.group)) &&
        (!text || p.searched.includes(text)),
    );
  };

  const answerRow = (answer, original, judge) => {
    const differs = answer.probe !== "original" && original && original.label !== answer.label;
    const sure = answer.probability == null ? "" : ` ${(100 * answer.probability).toFixed(0)} %`;
    const asked = [answer.question, answer.frame == null ? "" : `frame ${answer.frame}`,
      answer.probe === "original" ? "" : answer.probe];
    return make(
      "tr", { className: differs ? "differs" : "" },
      make("td", { textContent: data.judges.length > 1 ? String(judge + 1) : "" }),
      make("td", { textContent: asked.filter(Boolean).join(", ") || "image" }),
      make("td", {}, make("b", { textContent: (differs ? "≠ " : "") + answer.label + sure }),
        answer.raw && answer.raw !== answer.label ? make("q", { textContent: answer.raw }) : ""),
    );
  };

  const thumbnail = (file, alt, absent) => file
    ? make("img", { src: file, loading: "lazy", decoding: "async", alt })
    : make("div", { className: "absent", textContent: absent });

  // A GIF or WebP plays as an image does.
  const player = (image) => /\.(mp4|webm)$/.test(image.clip)
    ? make("video", { src: image.clip, poster: image.thumbnail, controls: true, muted: true,
        loop: true, preload: "none", title: `clip made for: ${image.prompt}` })
    : thumbnail(image.clip, `clip made for: ${image.prompt}`, "");

  const card = (image) => {
    const result = image.clip ? player(image)
      : thumbnail(image.thumbnail, `image drawn for: ${image.prompt}`,
        image.status === "made" ? "unreadable image" : `no image: ${image.status}`);
    const named = (shown, name) =>
      make("figure", {}, shown, make("figcaption", { textContent: name }));
    const shown = image.edit
      ? make("div", { className: "edit" },
          named(thumbnail(image.source, "image before the edit", "no source"), "source"),
          named(result, "result"))
      : result;
    const rows = image.answers.flatMap((part, judge) =>
      part.map((a) => answerRow(
        a, part.find((o) => o.question === a.question && o.frame === a.frame
          && o.probe === "original"), judge)));
    return make(
      "li", { id: image.id },
      shown,
      make("p", { className: "prompt", dir: "auto", textContent: image.prompt }),
      make("p", { className: "facts", textContent:
        [image.variant, ...groupsOf(image), `seed ${image.seed}`].join(" · ") }),
      make("p", { className: "flags" },
        ...image.flags.map((flag) => make("span", { textContent: flagNames[flag] }))),
      rows.length ? make("table", {}, make("tbody", {}, ...rows))
        : make("p", { className: "undefined", textContent: "not judged" }),
      make("p", { className: "id", textContent: image.id }),
    );
  };

  const show = () => {
    const images = wanted();
    const last = Math.max(0, Math.ceil(images.length / PAGE) - 1);
    page = Math.min(page, last);
    const start = page * PAGE;
    const part = images.slice(start, start + PAGE);
    list.replaceChildren(...part.map(card));
    found.textContent = images.length
      ? `${start + 1} to ${start + part.length} of ${images.length} images`
      : "No image matches.";
    for (const pager of pagers) {
      const step = (name, by, off) => {
        const button = make("button", { type: "button", textContent: name, disabled: off });
        button.addEventListener("click", () => {
          page += by;
          keep();
          show();
          found.scrollIntoView();
        });
        return button;
      };
      pager.replaceChildren(
        ...(last ? [step("‹ earlier", -1, page === 0),
          make("span", { textContent: `page ${page + 1} of ${last + 1}` }),
          step("later ›", 1, page === last)] : []),
      );
    }
  };

  // The address keeps the choice, so that a view can be sent to somebody.
  const keep = () => {
    const choice = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    if (page) choice.set("page", page + 1);
    history.replaceState(null, "", `#${choice}`);
  };

  const restore = () => {
    const choice = new URLSearchParams(location.hash.slice(1));
    form.reset();
    for (const [name, value] of choice) {
      if (name === "page") continue;
      for (const field of form.querySelectorAll(`[name="${CSS.escape(name)}"]`)) {
        if (field.type !== "radio") field.value = value;
        else if (field.value === value && !field.disabled) field.checked = true;
      }
    }
    page = Math.max(0, (parseInt(choice.get("page"), 10) || 1) - 1);
    show();
  };

  form.addEventListener("input", () => {
    page = 0;
    keep();
    show();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", restore);
  restore();
})();
