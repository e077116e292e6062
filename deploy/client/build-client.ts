/**
 * Builds the client package from `shared/client` and the parts of `shared/core` that it uses:
 * JavaScript as ESM and CommonJS by Vite, and types. The package needs no other package and no
 * TypeScript, and can be packed and installed as it is.
 */
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'vite'
import { writeDeclarations } from './declarations.ts'

const projectFolder = fileURLToPath(new URL('../..', import.meta.url))
const clientFolder = join(projectFolder, 'shared/client')

/** Entries of the package and their sources. */
const entries = { index: 'client.ts', webcrypto: 'webcrypto.ts' }
const pages = ['README.md', 'ATTESTED-INSTALLS.md', 'MAPPINGS.md', 'WHO-SIGNS.md']
/** What both entries share is a file of its own, so that an error has one class. */
const commonName = 'common'

/**
 * Builds the package. A folder that is there is replaced once the new one is whole.
 * @param folder of the package
 */
export async function buildClient(folder: string): Promise<void> {
  mkdirSync(dirname(folder), { recursive: true })
  const made = mkdtempSync(`${folder}-`)
  try {
    await buildScripts(made)
    await writeDeclarations(made, { clientFolder, entries, commonName })
    for (const page of pages) {
      copyFileSync(join(clientFolder, page), join(made, page))
    }
    copyFileSync(join(projectFolder, 'LICENSE'), join(made, 'LICENSE'))
    await writeFile(join(made, 'package.json'), `${JSON.stringify(describePackage(), null, 2)}\n`)
    chmodSync(made, 0o755)
    rmSync(folder, { recursive: true, force: true })
    renameSync(made, folder)
  } finally {
    rmSync(made, { recursive: true, force: true })
  }
}

async function buildScripts(folder: string): Promise<void> {
  for (const [format, ending] of [
    ['es', 'js'],
    ['cjs', 'cjs'],
  ] as const) {
    await build({
      configFile: false,
      root: clientFolder,
      logLevel: 'warn',
      publicDir: false,
      build: {
        outDir: folder,
        emptyOutDir: false,
        // Of Node 18, the oldest one.
        target: 'es2022',
        minify: false,
        lib: { entry: entries, formats: [format], fileName: (_, name) => `${name}.${ending}` },
        rolldownOptions: {
          external: [/^node:/],
          output: { chunkFileNames: `${commonName}.${ending}`, minifyInternalExports: false },
        },
      },
    })
  }
}

/** The package's own `package.json`. */
function describePackage() {
  const root = JSON.parse(readFileSync(join(projectFolder, 'package.json'), 'utf8'))
  const toEntry = (name: string) => ({
    import: { types: `./${name}.d.ts`, default: `./${name}.js` },
    require: { types: `./${name}.d.cts`, default: `./${name}.cjs` },
  })
  return {
    name: 'device-intelligence-client',
    version: root.version,
    description: 'Signs and sends telemetry, verifies webhooks, maps reports of mobile SDKs.',
    license: root.license,
    type: 'module',
    engines: { node: '>=18' },
    sideEffects: false,
    main: './index.cjs',
    types: './index.d.cts',
    exports: {
      '.': toEntry('index'),
      './webcrypto': toEntry('webcrypto'),
      './package.json': './package.json',
    },
  }
}
