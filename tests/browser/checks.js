// What a person with a keyboard, a screen reader or weak eyes would stumble over, as a list of sentences.
() => {
  const found = []
  const isSeen = (node) => node.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) && !node.closest(".unseen, .skip")
  const nameOf = (node) => node.getAttribute("aria-label") || document.getElementById(node.getAttribute("aria-labelledby"))?.textContent ||
    node.labels?.[0]?.textContent || node.textContent || node.title
  const told = (node) => `<${node.localName} class="${node.getAttribute("class") ?? ""}" id="${node.id}">`

  for (const node of document.querySelectorAll("button, a[href], input, select, progress, summary, [role=region], [role=img], section, article")) {
    if (isSeen(node) && !nameOf(node)?.trim()) found.push(`${told(node)} has no name`)
  }
  for (const image of document.querySelectorAll("img")) if (!image.hasAttribute("alt")) found.push(`${told(image)} has no alt`)
  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id)
  for (const id of new Set(ids.filter((id, index) => ids.indexOf(id) !== index))) found.push(`the id ${id} is there twice`)
  for (const attribute of ["aria-labelledby", "aria-controls"]) {
    for (const node of document.querySelectorAll(`[${attribute}]`)) {
      if (!document.getElementById(node.getAttribute(attribute))) found.push(`${told(node)}: ${attribute} names nothing`)
    }
  }
  for (const landmark of ["header", "main", "footer", "h1"]) {
    if (document.querySelectorAll(landmark).length !== 1) found.push(`there is not one ${landmark}`)
  }
  let level = 0
  for (const heading of document.querySelectorAll("h1, h2, h3, h4")) {
    if (!heading.checkVisibility()) continue
    const now = Number(heading.localName[1])
    if (now > level + 1) found.push(`${heading.textContent}: h${now} follows h${level}`)
    level = now
  }

  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true })
  const painted = (...colours) => {
    canvas.clearRect(0, 0, 1, 1)
    for (const colour of colours) {
      canvas.fillStyle = colour
      canvas.fillRect(0, 0, 1, 1)
    }
    return [...canvas.getImageData(0, 0, 1, 1).data]
  }
  const light = ([red, green, blue]) => {
    const [r, g, b] = [red, green, blue].map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const behind = (node) => {
    const colours = []
    for (let at = node; at; at = at.parentElement) colours.unshift(getComputedStyle(at).backgroundColor)
    return colours
  }
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  let looked = 0
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement
    if (!walker.currentNode.textContent.trim() || !isSeen(node) || node.closest(":disabled, title, option, .in-cell")) continue
    looked += 1
    const style = getComputedStyle(node)
    const ground = behind(node instanceof SVGElement ? node.closest("svg").parentElement : node)
    const ink = node instanceof SVGElement ? style.fill : style.color
    const [a, b] = [light(painted(...ground, ink)), light(painted(...ground))]
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
    const isLarge = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700)
    if (contrast < (isLarge ? 3 : 4.5)) found.push(`${walker.currentNode.textContent.trim().slice(0, 40)}: contrast ${contrast.toFixed(2)} in ${told(node)}`)
  }
  for (const card of document.querySelectorAll(".card, .tile, .process")) {
    const edge = card.getBoundingClientRect().right
    for (const node of card.querySelectorAll("*")) {
      if (!isSeen(node) || node.closest(".scroll *, .canvas *")) continue
      if (node.getBoundingClientRect().right > edge + 1) found.push(`${told(node)} reaches out of its card`)
    }
  }
  if (looked < 20) found.push(`only ${looked} texts were looked at`)
  if (document.documentElement.scrollWidth > innerWidth) found.push(`the page is ${document.documentElement.scrollWidth} wide, the window ${innerWidth}`)
  return [...new Set(found)]
}
