/**
 * Brings the tab that becomes the chosen one into view, in a row of tabs that a narrow screen cuts.
 * The page itself stays where it is.
 */
export function scrollAcross(tab: HTMLElement | null): void {
  const row = tab?.parentElement
  if (tab === null || !row || row.scrollWidth <= row.clientWidth) return
  row.scrollLeft = tab.offsetLeft - row.offsetLeft - (row.clientWidth - tab.clientWidth) / 2
}
