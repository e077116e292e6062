// The runtimes that the client package is tested on, each from npm: the Node of this process, and
// those of `runtimes/package.json`, which only this test installs, once, into the cache folder.
import { createHash, randomUUID } from 'node:crypto'
import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { cp, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cacheFolder } from '#shared/io/process/cache-folder.ts'
import { runNpm } from './run-npm.ts'

const listFolder = fileURLToPath(new URL('runtimes', import.meta.url))
const projectFolder = fileURLToPath(new URL('../../..', import.meta.url))

/** @returns the programs by name: `node-20`, `bun` */
export async function findRuntimes(): Promise<Record<string, string>> {
  const { optionalDependencies } = JSON.parse(read('package.json')) as {
    optionalDependencies: Record<string, string>
  }
  const machine = `-linux-${process.arch}`
  const packages = Object.keys(optionalDependencies).filter((name) => name.endsWith(machine))
  const names = packages.map((name) => name.slice(0, -machine.length))
  const lock = createHash('sha256').update(read('package-lock.json')).digest('hex').slice(0, 12)
  const kept = join(cacheFolder(process.env, projectFolder), `client-runtimes-${lock}`)
  if (!existsSync(kept)) await install(packages, kept)
  const found = names.map((name): [string, string] => [name, join(kept, name)])
  const [major] = process.versions.node.split('.')
  return Object.fromEntries([...found, [`node-${major}`, process.execPath]])
}

const read = (name: string) => readFileSync(join(listFolder, name), 'utf8')

/** Keeps the programs alone: the packages also have headers and manuals. */
async function install(packages: readonly string[], kept: string): Promise<void> {
  const made = `${kept}.${randomUUID().slice(0, 8)}`
  const installed = join(made, 'installed')
  mkdirSync(installed, { recursive: true })
  try {
    for (const name of ['package.json', 'package-lock.json', '.npmrc']) {
      copyFileSync(join(listFolder, name), join(installed, name))
    }
    await runNpm(['ci'], installed)
    for (const name of packages) {
      const program = name.startsWith('bun') ? 'bun' : 'node'
      const target = join(made, name.replace(/-linux-.*/, ''))
      await cp(join(installed, 'node_modules', name, 'bin', program), target)
    }
    await rm(installed, { recursive: true })
    // When two install at once, the second finds the files of the first.
    await rename(made, kept).catch((error: unknown) => {
      if (!existsSync(kept)) throw error
    })
  } finally {
    await rm(made, { recursive: true, force: true })
  }
}
