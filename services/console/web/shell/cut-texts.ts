/**
 * Tells a text in full where its line is cut, when the pointer comes to it. It is one listener for
 * all pages: whether a text fits is known only once it is laid out.
 */

/** Marks titles that come from here: what a row shows can change. */
const mark = 'cut'

export function watchCutTexts(): void {
  addEventListener('mouseover', ({ target }) => {
    const line = target instanceof Element ? target.closest<HTMLElement>('.truncate') : null
    if (line === null || (line.title !== '' && !(mark in line.dataset))) return
    if (line.scrollWidth > line.clientWidth) {
      line.title = line.textContent
      line.dataset[mark] = ''
    } else if (mark in line.dataset) {
      line.removeAttribute('title')
      delete line.dataset[mark]
    }
  })
}
