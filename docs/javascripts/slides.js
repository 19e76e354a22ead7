// The pictures of a block become one picture with a slider; without this script they stand one below the other.
for (const block of document.querySelectorAll(".slides")) {
  const pictures = [...block.querySelectorAll("img")];
  const slider = document.createElement("input");
  Object.assign(slider, { type: "range", min: 0, max: pictures.length - 1, step: 1, value: 0 });
  slider.setAttribute("aria-label", "picture");
  const show = () => {
    const now = Number(slider.value);
    pictures.forEach((picture, i) => { picture.hidden = i !== now; });
    slider.setAttribute("aria-valuetext", pictures[now].alt);
  };
  slider.addEventListener("input", show);
  block.prepend(slider);
  show();
}
