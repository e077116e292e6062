/** Where the pages' sources are, where the built pages are served from, and the page of roles. */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const webFolder = fileURLToPath(new URL('../web', import.meta.url))
export const pagesFolder = join(webFolder, 'dist')
export const rolesPage = fileURLToPath(new URL('../ROLES.md', import.meta.url))
