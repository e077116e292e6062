/** Where the pages' sources are, and where the built pages are served from. */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const webFolder = fileURLToPath(new URL('../web', import.meta.url))
export const pagesFolder = join(webFolder, 'dist')
