// The fetched nats-server in the cache folder. Its name carries its SHA-256, which was taken when it
// was verified: by apt's signatures, or by the pinned digest of the release archive. It is read
// again before each start, so a damaged or replaced file never runs. Against whoever can rename
// files in the folder only its owner and mode help: a folder or file of another user, or one that
// everyone may write to, is not used.

import { createHash, randomUUID } from 'node:crypto'
import { readdirSync, readFileSync, type Stats, statSync } from 'node:fs'
import { chmod, copyFile, rename } from 'node:fs/promises'
import { join } from 'node:path'

import { isOlder } from '#shared/core/base/server-versions.ts'
import { type NatsServerBinary, readNatsVersion } from './nats-version.ts'

const addressed = /^nats-server-[\d.]+-([0-9a-f]+)$/
/** As the previous release named it, without a digest. */
const bare = /^nats-server-\d+\.\d+\.\d+$/

/**
 * The newest binary in the cache folder that is what was verified, or null.
 * @param report is told of each file that is not used, and why
 */
export async function cachedNatsServer(
  cacheDir: string,
  report: (line: string) => void,
): Promise<NatsServerBinary | null> {
  const names = listNames(cacheDir)
  const found = names
    .filter((name) => addressed.test(name))
    .map((name) => readVerified(join(cacheDir, name), addressed.exec(name)![1]!, report))
    .filter((binary) => binary !== null)
  if (found.length > 0) return newest(found)
  const kept = names.filter((name) => bare.test(name)).map((name) => join(cacheDir, name))
  const old = newest(kept.filter((file) => isOurs(file, report)).map(readNatsVersion))
  if (old === null) return null
  report(`${old.file} has no digest yet: it is taken now, and held from now on`)
  return keepInCache(cacheDir, old.file)
}

/** Keeps a verified program under its digest. @throws Error when it does not run here */
export async function keepInCache(cacheDir: string, file: string): Promise<NatsServerBinary> {
  const fresh = join(cacheDir, `nats-server-${randomUUID()}.tmp`)
  await copyFile(file, fresh)
  await chmod(fresh, 0o755)
  const fetched = readNatsVersion(fresh)
  if (!fetched) throw new Error('the fetched program does not run here')
  const kept = join(cacheDir, `nats-server-${fetched.version}-${digestOf(fresh)}`)
  await rename(fresh, kept)
  return { ...fetched, file: kept }
}

const digestOf = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex')

function listNames(cacheDir: string): string[] {
  try {
    return readdirSync(cacheDir)
  } catch {
    return []
  }
}

function newest(found: readonly (NatsServerBinary | null)[]): NatsServerBinary | null {
  const present = found.filter((binary) => binary !== null)
  return present.sort((a, b) => (isOlder(a.version, b.version) ? 1 : -1))[0] ?? null
}

function readVerified(
  file: string,
  digest: string,
  report: (line: string) => void,
): NatsServerBinary | null {
  if (!isOurs(file, report)) return null
  if (digestOf(file) === digest) return readNatsVersion(file)
  report(`${file} is not used: its SHA-256 is another one than when it was verified`)
  return null
}

/** Whether only its owner and root may write to a file. */
function isOurs(file: string, report: (line: string) => void): boolean {
  const isSafe = ({ uid, mode }: Stats) =>
    (uid === 0 || uid === process.getuid?.()) && (mode & 0o002) === 0
  const unsafe = [join(file, '..'), file].find((path) => !isSafe(statSync(path)))
  if (unsafe === undefined) return true
  report(`${file} is not used: others can change ${unsafe}`)
  return false
}
