"use strict";
// Texts come from models: they are only ever set as textContent, never as markup.
(() => {
  const PAGE = 24;
  const data = JSON.parse(document.getElementById("data").textContent);
  const form = document.querySelector(".filters");
  const list = document.querySelector(".items");
  const found = document.querySelector(".found");
  const large = document.querySelector(".large");
  const pagers = [...document.querySelectorAll(".pager")];
  const flagNames = Object.fromEntries(data.filters.map((f) => [f.flag, f.name]));
  let page = 0;
  let open = -1;

  const compares = data.runs.length > 1;

  // All prompts of one row and seed are one item, of all generators.
  const items = new Map();
  for (const image of data.images) {
    const answers = image.answers.flat().map((a) => `${a.label} ${a.raw ?? ""}`);
    image.searched = [image.id, image.prompt, ...answers].join("\n").toLowerCase();
    if (!items.has(image.item)) items.set(image.item, []);
    items.get(image.item).push(image);
  }

  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };

  const groupsOf = (image) =>
    Object.entries(image.groups).flatMap(([name, values]) => values.map((v) => `${name}: ${v}`));

  const chosen = () => {
    const choice = Object.fromEntries(new FormData(form));
    const text = (choice.text || "").trim().toLowerCase();
    return (image) =>
      (!choice.flag || image.flags.includes(choice.flag)) &&
      (!choice.run || image.run === Number(choice.run)) &&
      (!choice.variant || image.variant === choice.variant) &&
      (!choice.group || groupsOf(image).includes(choice.group)) &&
      (!choice.label || image.answers.flat().some((a) => a.label === choice.label)) &&
      (!text || image.searched.includes(text));
  };

  // The labels of a mirrored image are turned back: they are of the image as it is shown.
  const PROBES = { original: "", mirror: "asked of the mirror image", swap: "names exchanged",
    mirror_swap: "asked of the mirror image, names exchanged" };
  const sure = (answer) =>
    answer.probability == null ? "" : ` ${(100 * answer.probability).toFixed(0)} %`;
  const originalOf = (part, a) => part.find((o) =>
    o.question === a.question && o.frame === a.frame && o.probe === "original");
  const differs = (part, a) => {
    const original = originalOf(part, a);
    return a.probe !== "original" && original && original.label !== a.label;
  };
  const asked = (a) => [a.question, a.frame == null ? "" : `frame ${a.frame}`,
    PROBES[a.probe] ?? a.probe].filter(Boolean).join(", ") || "image";
  const said = (part, a) =>
    make("b", { textContent: (differs(part, a) ? "≠ " : "") + a.label + sure(a) });

  const picture = (file, alt, absent) => file
    ? make("img", { src: file, decoding: "async", alt })  // not lazy: what is below must print
    : make("div", { className: "absent", textContent: absent });
  const whole = (file) => (file && data.whole ? file.replace(/^[^/]+/, data.whole) : file);

  // A GIF or WebP plays as an image does.
  const player = (image) => /\.(mp4|webm)$/.test(image.clip)
    ? make("video", { src: image.clip, poster: image.thumbnail, controls: true, muted: true,
        loop: true, preload: "none", title: `clip made for: ${image.prompt}` })
    : picture(image.clip, `clip made for: ${image.prompt}`, "");
  const absence = (image) =>
    image.status === "made" ? "unreadable image" : `no image: ${image.status}`;
  const named = (shown, name) => make("figure", {}, shown, make("figcaption", { textContent: name }));

  // Links a generator's image to all that its judges said of it.
  const maker = (image) => {
    const { name, slug } = data.runs[image.run];
    return make("p", { className: "variant" }, make("a", { textContent: name,
      href: `gallery-${slug}.html#text=${encodeURIComponent(image.id)}` }));
  };

  const card = (image, fits) => {
    const result = image.clip ? player(image)
      : picture(image.thumbnail, `image drawn for: ${image.prompt}`, absence(image));
    const shown = image.edit
      ? make("div", { className: "edit" },
          named(picture(image.source, "image before the edit", "no source"), "source"),
          named(result, "result"))
      : result;
    const button = make("button", { type: "button", className: "zoom" });
    button.setAttribute("aria-label", `see large, with all answers: ${image.id}`);
    button.addEventListener("click", () => showLarge(data.images.indexOf(image)));
    if (image.clip) button.textContent = "all answers"; else button.append(shown);
    // A line for each judge and question; the controls only where they change the answer.
    const rows = image.answers.flatMap((part, judge) => part
      .filter((a) => a.probe === "original" || !originalOf(part, a))
      .map((a) => {
        const changed = part.filter((o) => originalOf(part, o) === a && differs(part, o))
          .map((o) => PROBES[o.probe] ?? o.probe);
        return make("tr", { className: changed.length ? "differs" : "" },
          make("td", { textContent: data.judges.length > 1 ? String(judge + 1) : "" }),
          make("td", { textContent: asked(a) }),
          make("td", {}, said(part, a),
            changed.length ? make("small", { textContent: `≠ ${changed.join(" ≠ ")}` }) : ""));
      }));
    return make("div", { id: compares ? `${image.id}-${image.run}` : image.id,
      className: fits ? "image fits" : "image" },
      compares ? maker(image) : make("p", { className: "variant", textContent: image.variant }),
      ...(image.clip ? [shown, button] : [button]),
      compares ? "" : make("p", { className: "prompt", dir: "auto", textContent: image.prompt }),
      make("p", { className: "flags" },
        ...image.flags.map((flag) => make("span", { textContent: flagNames[flag] }))),
      rows.length ? make("table", {}, make("tbody", {}, ...rows))
        : make("p", { className: "undefined", textContent: "not judged" }));
  };

  const sides = (images, fits) =>
    make("div", { className: "sides" }, ...images.map((image) => card(image, fits(image))));

  // Of several generators: a line for each prompt.
  const lines = (images, fits) => [...new Set(images.map((image) => image.variant))].map((variant) => {
    const alike = images.filter((image) => image.variant === variant);
    return make("div", { className: "line" },
      make("p", { className: "prompt", dir: "auto", textContent: alike[0].prompt }),
      sides(alike, fits));
  });

  const item = (images, fits) => make("li", {},
    make("p", { className: "facts", textContent: [images[0].item, ...groupsOf(images[0])].join(" · ") }),
    ...(compares ? lines(images, fits) : [sides(images, fits)]));

  // The image beside what a judge was asked and answered about it.
  const answerBlock = (image, part, judge) => make("section", {},
    make("h3", { textContent: data.judges[judge] }),
    make("table", {}, make("thead", {}, make("tr", {},
      ...["image", "asked", "answered", ...(compares ? [] : ["in its words"])].map((textContent) =>
        make("th", { scope: "col", textContent })))),
    make("tbody", {}, ...part.map((a) => {
      const saw = picture(image.thumbnail, "image", absence(image));
      const key = Object.entries(data.keys[a.key] ?? {}).map(([k, v]) => `${k} = ${v}`);
      return make("tr", { className: differs(part, a) ? "differs" : "" },
        make("td", {}, saw),
        make("td", {}, asked(a), make("small", { textContent: key.join(", ") })),
        make("td", {}, said(part, a)),
        ...(compares ? [] : [make("td", {}, make("q", { textContent: a.raw }))]));
    }))));

  const showLarge = (number) => {
    open = (number + data.images.length) % data.images.length;
    const image = data.images[open];
    const step = (name, by) => {
      const button = make("button", { type: "button", textContent: name });
      button.addEventListener("click", () => showLarge(open + by));
      return button;
    };
    const close = make("button", { type: "button", textContent: "Close" });
    close.addEventListener("click", () => large.close());
    const full = make("img", { src: whole(image.thumbnail), alt: `image drawn for: ${image.prompt}` });
    const result = image.clip ? player(image)
      : image.thumbnail ? full : picture("", "", absence(image));
    const others = items.get(image.item).filter((other) => other !== image);
    large.replaceChildren(
      make("div", { className: "bar" }, step("‹ earlier", -1), step("later ›", 1), close),
      make("p", { className: "prompt", dir: "auto", textContent: image.prompt }),
      make("p", { className: "facts", textContent:
        [...(compares ? [data.runs[image.run].name] : []), image.id, image.variant,
          ...groupsOf(image)].join(" · ") }),
      make("div", { className: "whole" },
        ...(image.edit ? [named(picture(whole(image.source), "image before the edit", "no source"),
          "source")] : []),
        result),
      data.whole || image.clip ? "" : make("p", { className: "facts", textContent:
        "A preview of at most 256 pixels: write the report with --full-size for the whole image." }),
      make("p", { className: "facts" }, ...others.map((other) => {
        const button = make("button", { type: "button", textContent:
          `see ${compares ? `${data.runs[other.run].name}, ` : ""}${other.variant}` });
        button.addEventListener("click", () => showLarge(data.images.indexOf(other)));
        return button;
      })),
      ...image.answers.map((part, judge) => (part.length ? answerBlock(image, part, judge) : "")),
    );
    if (!large.open) large.showModal();
    large.scrollTop = 0;
  };
  large.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by && event.target.tagName !== "VIDEO") showLarge(open + by);
  });
  large.addEventListener("click", (event) => {
    if (event.target === large) large.close();
  });

  const show = () => {
    const fits = chosen();
    const parts = [...items.values()].filter((images) => images.some(fits));
    const count = parts.reduce((sum, images) => sum + images.filter(fits).length, 0);
    const last = Math.max(0, Math.ceil(parts.length / PAGE) - 1);
    page = Math.min(page, last);
    const start = page * PAGE;
    const part = parts.slice(start, start + PAGE);
    const all = count === data.images.length;
    list.classList.toggle("chosen", !all);
    list.replaceChildren(...part.map((images) => item(images, fits)));
    found.textContent = parts.length
      ? `${count} image${count === 1 ? "" : "s"} in ${parts.length} item${parts.length === 1 ? "" : "s"}`
        + (last ? `, items ${start + 1} to ${start + part.length}` : "")
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
