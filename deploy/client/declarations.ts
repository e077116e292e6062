/**
 * The types of the client package: `tsc` declares the sources, and what the package exports is
 * collected into one file that imports nothing, beside a small one for each entry. Types that
 * follow from the service's tables are written out by `service-declarations.ts`.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { renderServiceTypes } from './service-declarations.ts'

type Sources = {
  clientFolder: string
  /** Names of entries with their sources. */
  entries: Readonly<Record<string, string>>
  /** The name of the file that the entries share. */
  commonName: string
}

/** What stands in the place of these sources. */
const rendered: Readonly<Record<string, () => Promise<string>>> = {
  'service-types.d.ts': renderServiceTypes,
}
/** The source that lists what all entries export. */
const exportsFile = 'exports.d.ts'

/** Writes `.d.ts` for ESM and `.d.cts` for CommonJS into the package's folder. */
export async function writeDeclarations(folder: string, sources: Sources): Promise<void> {
  const { entries, commonName } = sources
  const files = await declareSources(sources)
  const names = readExportedNames(files.get(exportsFile)!)
  const isEntry = (name: string) =>
    Object.values(entries).some((entry) => name === toDeclaration(entry))
  const others = [...files].filter(([name]) => !isEntry(name) && name !== exportsFile)
  const common = collect(others.map(([, text]) => text).join('\n'), names)
  const write = async (name: string, text: string) => {
    await writeFile(join(folder, `${name}.d.ts`), text)
    // The same but for the file that an entry imports.
    await writeFile(
      join(folder, `${name}.d.cts`),
      text.replaceAll("'./common.js'", "'./common.cjs'"),
    )
  }
  await write(commonName, common)
  for (const [name, source] of Object.entries(entries)) {
    const text = files.get(toDeclaration(source))!
    await write(name, text.replace(/'\.\/[\w/-]+\.ts'/g, `'./${commonName}.js'`))
  }
}

const toDeclaration = (source: string) => source.replace(/\.ts$/, '.d.ts')

/** The declarations of each source of the client, by file name. */
async function declareSources({ clientFolder, entries }: Sources): Promise<Map<string, string>> {
  const projectFolder = resolve(clientFolder, '../..')
  const made = await mkdtemp(join(tmpdir(), 'client-types-'))
  try {
    const options = [
      ...['--declaration', '--emitDeclarationOnly', '--noEmit', 'false', '--ignoreConfig'],
      ...['--strict', '--skipLibCheck', '--allowImportingTsExtensions', '--types', 'node'],
      ...['--module', 'nodenext', '--target', 'esnext', '--rootDir', '.', '--outDir', made],
    ]
    const compiler = join(projectFolder, 'node_modules/typescript/bin/tsc')
    const files = Object.values(entries).map((entry) => join(clientFolder, entry))
    await promisify(execFile)(process.execPath, [compiler, ...options, ...files], {
      cwd: projectFolder,
    })
    const folder = join(made, 'shared/client')
    const paths = (await readdir(folder, { recursive: true })).filter((path) => /\.ts$/.test(path))
    const texts = paths.sort().map(async (path): Promise<[string, string]> => {
      const name = basename(path)
      return [name, await (rendered[name]?.() ?? readFile(join(folder, path), 'utf8'))]
    })
    return new Map(await Promise.all(texts))
  } finally {
    await rm(made, { recursive: true })
  }
}

/** The names in `export { type A, B } from './c.ts'`. */
function readExportedNames(text: string): string[] {
  const lists = [...text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].map((match) => match[1]!)
  return lists.flatMap((list) => list.match(/\w+(?= *(?:,|$))/g) ?? [])
}

const declarationStart = /^(?:export )?(?:declare )?(?:type|interface|const|class|function) (\w+)/

/** Every declaration of a module by its name, with the comment above it. */
function readDeclarations(text: string): Map<string, string> {
  const declarations = new Map<string, string>()
  let comment = ''
  let name: string | undefined
  for (const line of text.split('\n')) {
    const started = declarationStart.exec(line)?.[1]
    if (started !== undefined) {
      if (declarations.has(started)) throw new Error(`two declarations have the name ${started}`)
      declarations.set(started, `${comment}${line.replace(/^export /, '')}\n`)
      name = started
    } else if (/^(\/\*\*|import|export)/.test(line)) {
      name = undefined
      comment = ''
    } else if (name !== undefined) {
      declarations.set(name, `${declarations.get(name)}${line}\n`)
    }
    if (name !== undefined) comment = ''
    else if (/^(\/\*\*| \*)/.test(line)) comment += `${line}\n`
  }
  return declarations
}

/** One module of these declarations, with those that the exported ones need. */
function collect(text: string, exported: readonly string[]): string {
  const declarations = readDeclarations(text)
  const needed = new Set<string>()
  const need = (name: string) => {
    const block = declarations.get(name)
    if (block === undefined || needed.has(name)) return
    needed.add(name)
    const code = block.split('\n').filter((line) => !/^ *(?:\/\*\*|\*)/.test(line))
    for (const word of code.join('\n').match(/\w+/g) ?? []) need(word)
  }
  for (const name of exported) {
    if (!declarations.has(name)) throw new Error(`nothing declares ${name}`)
    need(name)
  }
  const blocks = [...declarations].filter(([name]) => needed.has(name)).map(([, block]) => block)
  const module = blocks.map((block) => block.replace(/^(?=(?:const|class|function) )/m, 'declare '))
  return `${module.join('')}export { ${[...exported].sort().join(', ')} };\n`
}
