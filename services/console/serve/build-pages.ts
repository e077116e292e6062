/**
 * Builds the console's pages with Vite into `web/dist`, with a compressed copy beside each file.
 * A build is skipped while its sources are the ones of the build before, so `npm start` and the
 * tests call it each time. Vite itself is loaded only when there is something to build.
 */
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { pagesFolder, webFolder } from './pages-folder.ts'

const projectFolder = fileURLToPath(new URL('../../..', import.meta.url))
/** Holds the hash of the sources that a build was made from. */
const stampFile = join(pagesFolder, '.sources')
/** What the pages import beside their own files: decisions, and programs with a tenant's values. */
const importedFolders = ['../../../shared/core', '../../ingest/examples'].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
)
/** What else decides a build: the versions of packages, and this file. */
const otherSources = [
  // The reference of the public API.
  fileURLToPath(new URL('../../api/openapi/openapi.json', import.meta.url)),
  fileURLToPath(new URL('../../../package-lock.json', import.meta.url)),
  fileURLToPath(import.meta.url),
]

/** Packages that every page needs, by the beginning of their names. */
const framePackages = [
  ...['react', 'scheduler', 'radix-ui', '@radix-ui', '@floating-ui', 'aria-hidden'],
  ...['openapi-fetch', '@tanstack'],
].map((name) => `/node_modules/${name}`)
/** Of long lists alone. */
const listPackages = ['/node_modules/@tanstack/virtual', '/node_modules/@tanstack/react-virtual']
const isIn = (id: string, places: string[]) => places.some((place) => id.includes(place))

/** They are one file: as twenty small ones they would be compressed worse, by 4 kB. */
const frameGroup = {
  name: 'frame',
  test: (id: string) => isIn(id, framePackages) && !isIn(id, listPackages),
}

/** Whether the pages are built from the sources as they are now. */
export function arePagesFresh(): boolean {
  return existsSync(stampFile) && readFileSync(stampFile, 'utf8') === hashSources()
}

/**
 * Builds the pages unless they are fresh.
 * @returns whether it built them
 */
export async function buildPages(): Promise<boolean> {
  if (arePagesFresh()) return false
  const stamp = hashSources()
  const { build } = await import('vite')
  const { default: tailwind } = await import('@tailwindcss/vite')
  // Another process may serve the pages or build them too: a whole build takes the place of
  // another.
  const made = `${pagesFolder}-${process.pid}`
  const plain = linkPlainly(webFolder)
  try {
    await build({
      configFile: false,
      root: plain.folder,
      // Else the link would be followed.
      resolve: { preserveSymlinks: plain.isLink },
      // Relative addresses: one build serves any prefix.
      base: './',
      logLevel: 'error',
      plugins: [tailwind()],
      // Whatever NODE_ENV says, for example in tests: React has another build for development.
      define: { 'process.env.NODE_ENV': '"production"' },
      oxc: { jsx: { runtime: 'automatic', importSource: '#jsx', development: false } },
      build: {
        outDir: made,
        emptyOutDir: true,
        target: 'es2022',
        // The colours of both themes are written with light-dark().
        cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
        // As files, because the content security policy allows no data addresses.
        assetsInlineLimit: 0,
        // What each page imports would be named in the first one, at 2 kB; a page finds its own.
        modulePreload: false,
        rolldownOptions: { output: { codeSplitting: { groups: [frameGroup] } } },
      },
    })
    compressFiles(made)
    writeFileSync(join(made, '.sources'), stamp)
    replaceFolder(made)
  } finally {
    plain.remove()
    rmSync(made, { recursive: true, force: true })
  }
  return true
}

/**
 * A path to a folder that Vite can read: it takes what follows `#` or `?` for a part of an address,
 * so a project in such a folder is built through a link.
 */
function linkPlainly(folder: string): { folder: string; isLink: boolean; remove: () => void } {
  if (!/[#?]/.test(folder)) return { folder, isLink: false, remove: () => undefined }
  const own = mkdtempSync(join(tmpdir(), 'di-pages-'))
  // Of the whole project, because the pages also import what lies beside them.
  const link = join(own, 'project')
  symlinkSync(projectFolder, link)
  const remove = () => rmSync(own, { recursive: true, force: true })
  return { folder: join(link, relative(projectFolder, folder)), isLink: true, remove }
}

function replaceFolder(made: string): void {
  const old = `${made}-old`
  if (existsSync(pagesFolder)) renameSync(pagesFolder, old)
  renameSync(made, pagesFolder)
  rmSync(old, { recursive: true, force: true })
}

/** Writes `.br` and `.gz` beside every text that is large enough to gain from it. */
function compressFiles(folder: string): void {
  for (const name of listFiles(folder)) {
    if (!/\.(js|css|svg)$/.test(name)) continue
    const path = join(folder, name)
    const content = readFileSync(path)
    writeFileSync(`${path}.br`, brotliCompressSync(content))
    writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }))
  }
}

function hashSources(): string {
  const hash = createHash('sha256')
  const own = listFiles(webFolder)
    .filter((name) => !/^dist/.test(name) && !name.endsWith('.md'))
    .sort()
  for (const name of own) hash.update(`${name}\0`).update(readFileSync(join(webFolder, name)))
  const imported = importedFolders.flatMap((folder) =>
    listFiles(folder).map((name) => join(folder, name)),
  )
  for (const path of [...otherSources, ...imported.sort()]) hash.update(readFileSync(path))
  return hash.digest('hex')
}

const listFiles = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
