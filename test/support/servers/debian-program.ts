// A program of Debian for tests: the one on the path, else the package of the machine's own Debian
// suite, unpacked into the cache folder. Nothing is installed.
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cacheFolder } from '#shared/io/process/cache-folder.ts'
import { ownSources, readOsRelease, unpackFromApt } from '../../../deploy/local/nats/nats-fetch.ts'
import { findProgram } from '../../../deploy/local/stack/launch.ts'

const projectDir = fileURLToPath(new URL('../../..', import.meta.url))

/** `libraries` is a folder for LD_LIBRARY_PATH; undefined for an installed program. */
export type DebianProgram = { file: string; libraries: string | undefined }

/**
 * Finds or fetches a program.
 * @param path its file in the package, such as `usr/bin/promtool`
 * @param packages by suite: the program's own, and libraries that a machine may lack
 * @throws when the program is not installed and cannot be fetched
 */
export async function findDebianProgram(
  path: string,
  packages: Readonly<Record<string, readonly string[]>>,
): Promise<DebianProgram> {
  const name = basename(path)
  const installed = findProgram(name, process.env.PATH)
  if (installed !== null) return { file: installed, libraries: undefined }
  const kept = join(cacheFolder(process.env, projectDir), name)
  if (!existsSync(kept)) await fetchPackages(name, packages, kept)
  const folder = join(kept, 'usr/lib')
  const inFolder = existsSync(folder) ? await readdir(folder) : []
  const machine = inFolder.find((entry) => entry.endsWith('-linux-gnu'))
  return { file: join(kept, path), libraries: machine && join(folder, machine) }
}

async function fetchPackages(
  name: string,
  packages: Readonly<Record<string, readonly string[]>>,
  kept: string,
): Promise<void> {
  const [aptGet, dpkg] = ['apt-get', 'dpkg'].map((tool) => findProgram(tool, process.env.PATH))
  const suite = readOsRelease('/etc/os-release').VERSION_CODENAME ?? ''
  const packageNames = packages[suite]
  if (!aptGet || !dpkg || packageNames === undefined) {
    throw new Error(`install ${name}: it cannot be fetched on this machine`)
  }
  const workDir = `${kept}.${randomUUID().slice(0, 8)}`
  await mkdir(workDir, { recursive: true })
  try {
    const sources = ownSources('/etc/apt', suite)
    const files = await unpackFromApt({
      aptGet,
      dpkg,
      sources,
      suite,
      workDir,
      packages: packageNames,
    })
    // When two fetch at once, the second finds the files of the first.
    await rename(files, kept).catch((error: unknown) => {
      if (!existsSync(kept)) throw error
    })
  } finally {
    await rm(workDir, { recursive: true, force: true })
  }
}
