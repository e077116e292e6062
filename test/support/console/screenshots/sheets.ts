// Contact sheets: pictures side by side, so that many pages can be seen at a look.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Page } from 'playwright-core'

export type Picture = { file: string; name: string }

/** What a sheet is at most, in px: a viewer makes larger ones smaller. */
const sheetPx = { width: 1_960, height: 1_900 }

/**
 * @param across pictures of a row
 * @returns how many sheets were written as `sheet-<kind>-<n>.png`
 */
export async function writeSheets(
  page: Page,
  folder: string,
  { kind, pictures, across }: { kind: string; pictures: Picture[]; across: number },
): Promise<number> {
  const widthPx = Math.floor(sheetPx.width / across) - 8
  const listFile = join(folder, 'sheet.html')
  const perSheet = across * (kind.includes('320') ? 1 : 2)
  await page.setViewportSize({ width: sheetPx.width, height: 600 })
  let written = 0
  for (let at = 0; at < pictures.length; at += perSheet) {
    const figures = pictures
      .slice(at, at + perSheet)
      .map(
        ({ file, name }) =>
          `<figure><figcaption>${name}</figcaption><img src="${file}" width="${widthPx}"></figure>`,
      )
    writeFileSync(
      listFile,
      `<style>body{margin:0;display:flex;flex-wrap:wrap;gap:8px;align-items:start;background:#888}
      figure{margin:0}
      img{display:block;max-height:${sheetPx.height}px;object-fit:cover;object-position:top}
      figcaption{font:bold 14px sans-serif}</style>${figures.join('')}`,
    )
    await page.goto(pathToFileURL(listFile).href)
    const file = `sheet-${kind}-${String(++written).padStart(2, '0')}.png`
    await page.screenshot({ path: join(folder, file), fullPage: true })
  }
  return written
}
