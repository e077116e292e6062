/**
 * What the translator of a browser does to a page, as an init script: every text, also one that
 * appears later, is taken out and a translation is put in, inside two `font` elements. The
 * "translation" has a tilde before it. What has `translate="no"` stays.
 */
export const translator = `{
  const kept = 'script, style, noscript, textarea, [translate=no]'
  const translateText = (text) => {
    const parent = text.parentElement
    if (parent === null || text.data.trim() === '') return
    if (parent.closest(kept) !== null || parent.closest('font') !== null) return
    const [outer, inner] = [document.createElement('font'), document.createElement('font')]
    inner.append('~' + text.data.trim())
    outer.append(inner)
    text.replaceWith(outer)
  }
  const translateAll = (node) => {
    const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT)
    const texts = node instanceof Text ? [node] : []
    while (walker.nextNode()) texts.push(walker.currentNode)
    for (const text of texts) translateText(text)
  }
  new MutationObserver((changes) => {
    for (const { addedNodes, target } of changes) {
      for (const node of addedNodes) translateAll(node)
      if (target instanceof Text) translateText(target)
    }
  }).observe(document, { childList: true, subtree: true, characterData: true })
}`
