// Fetches a nats-server binary into a cache folder when the machine has none that is new enough.
// There are two sources, and neither changes the system: on Debian and its derivatives the signed
// package of a newer suite, from the machine's own mirrors with apt-get in separate folders, which
// takes nothing without a valid signature of the distribution; everywhere else the project's
// release archive, pinned by version and SHA-256. The finished binary appears in the cache by one
// rename, under its digest (nats-cache.ts), so several stacks may fetch at the same time.

import { execFile } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { findProgram } from '../stack/launch.ts'
import { keepInCache } from './nats-cache.ts'
import { findOldBinary, type NatsServerBinary } from './nats-version.ts'

const run = promisify(execFile)

/** The pinned release, and the digests in its SHA256SUMS file. */
const RELEASE = {
  version: '2.15.0',
  origin: 'https://github.com/nats-io/nats-server/releases/download',
  sha256: {
    'linux-amd64': '5d2c51caca950333aba84911df7d377f826f3a59ec36061c6539105084f65c92',
    'linux-arm64': 'cdc208f5a3f42963a52b6ab06ef65626bb870315dc936e26ba571780c6351112',
    'darwin-arm64': 'e1c4e22d70bd44abfa0bcb3c16f7cf0c66f648c2e728c58924e8a1ce88913cc8',
  } as Record<string, string>,
}

const APT_TIMEOUT_MS = 120_000
const DOWNLOAD_TIMEOUT_MS = 120_000
const CONNECT_TIMEOUT_MS = 8_000

export type FetchOptions = {
  cacheDir: string
  pathVar: string | undefined
  report: (line: string) => void
  signal?: AbortSignal | undefined
  /** The folder of the machine's apt sources; tests use their own. */
  aptRoot?: string
  /** The origin of release archives; tests serve their own. */
  releaseOrigin?: string
  releaseSha256?: Record<string, string>
}

/**
 * Tries every available source and returns the first binary that runs and is new enough, with the
 * reasons of failed sources.
 */
export async function fetchNatsServer(
  options: FetchOptions,
): Promise<{ binary: NatsServerBinary | null; reasons: string[] }> {
  const reasons: string[] = []
  for (const way of [...aptWays(options), archiveWay(options)]) {
    if (options.signal?.aborted) break
    const workDir = join(options.cacheDir, `fetch-${process.pid}-${randomUUID().slice(0, 8)}`)
    try {
      await mkdir(workDir, { recursive: true })
      const file = await way.fetch(workDir)
      const found = await keepInCache(options.cacheDir, file)
      const old = findOldBinary(found)
      if (old === null) return { binary: found, reasons }
      reasons.push(`${way.name}: it ${old}`)
    } catch (error) {
      reasons.push(`${way.name}: ${firstLine(error)}`)
    } finally {
      await rm(workDir, { recursive: true, force: true })
    }
  }
  return { binary: null, reasons }
}

type Way = { name: string; fetch: (workDir: string) => Promise<string> }

/** The apt suites to try, newest first; empty without apt. */
function aptWays(options: FetchOptions): Way[] {
  const aptGet = findProgram('apt-get', options.pathVar)
  const dpkg = findProgram('dpkg', options.pathVar)
  const root = options.aptRoot ?? '/etc'
  if (!aptGet || !dpkg || !existsSync(join(root, 'apt'))) return []
  const release = readOsRelease(join(root, 'os-release'))
  const codename = release.VERSION_CODENAME ?? 'stable'
  const sources = ownSources(join(root, 'apt'), codename)
  if (sources.length === 0) return []
  const suites =
    release.ID === 'ubuntu' ? [codename, 'devel'] : ['sid', 'testing', 'stable', codename]
  return suites.map((suite) => ({
    name: `apt suite ${suite}`,
    fetch: async (workDir) => {
      options.report(`fetching nats-server from suite ${suite} of the machine's own apt mirror`)
      const packages = ['nats-server']
      const apt = { ...options, aptGet, dpkg, sources, suite, workDir, packages }
      return join(await unpackFromApt(apt), 'usr/sbin/nats-server')
    },
  }))
}

/**
 * Downloads packages from a suite of the machine's own mirrors, verified by apt as always, and
 * unpacks them. Nothing is installed.
 * @returns the folder of their files
 */
export async function unpackFromApt(options: {
  aptGet: string
  dpkg: string
  sources: AptSource[]
  suite: string
  workDir: string
  packages: readonly string[]
  signal?: AbortSignal | undefined
}): Promise<string> {
  const { workDir, suite } = options
  const parts = join(workDir, 'sources')
  const out = join(workDir, 'out')
  for (const folder of [
    parts,
    out,
    join(workDir, 'lists/partial'),
    join(workDir, 'cache/archives/partial'),
  ]) {
    await mkdir(folder, { recursive: true })
  }
  for (const [n, source] of options.sources.entries()) {
    await writeFile(join(parts, `s${n}.${source.format}`), source.withSuite(suite))
  }
  const config = join(workDir, 'apt.conf')
  await writeFile(config, aptConfig(workDir, parts))
  const apt = ['-c', config, '-qq']
  const limits = { timeout: APT_TIMEOUT_MS, signal: options.signal, cwd: out, encoding: 'utf8' }
  // A third party's source has no such suite and makes `update` fail; only the download matters.
  await run(options.aptGet, [...apt, 'update'], limits as object).catch(() => undefined)
  await run(options.aptGet, [...apt, 'download', ...options.packages], limits as object)
  const debs = (await readdir(out)).filter((name) => name.endsWith('.deb'))
  if (debs.length === 0) throw new Error('apt-get brought no package')
  for (const deb of debs) {
    await run(options.dpkg, ['-x', join(out, deb), join(workDir, 'x')], limits as object)
  }
  return join(workDir, 'x')
}

/** Read after the machine's own settings (a proxy stays), so apt uses only our folders. */
function aptConfig(workDir: string, parts: string): string {
  const settings = [
    ['Dir::Etc::SourceList', '/dev/null'],
    ['Dir::Etc::SourceParts', parts],
    ['Dir::State::Lists', join(workDir, 'lists')],
    ['Dir::Cache', join(workDir, 'cache')],
    ['Acquire::Languages', 'none'],
    // Also where the machine allows it otherwise: what has no valid signature is not taken.
    ['Acquire::AllowInsecureRepositories', 'false'],
    ['Acquire::AllowWeakRepositories', 'false'],
    ['APT::Get::AllowUnauthenticated', 'false'],
    ['Acquire::Retries', '1'],
    ['Acquire::http::Timeout', '15'],
    ['Acquire::https::Timeout', '15'],
    // As root apt would change to a user who cannot enter a private cache folder.
    ...(process.getuid?.() === 0 ? [['APT::Sandbox::User', 'root']] : []),
  ]
  // The machine's hooks after an update are only for its own packages.
  const hooks = ['Pre-Invoke', 'Post-Invoke', 'Post-Invoke-Success']
  return [
    ...hooks.map((hook) => `#clear APT::Update::${hook};`),
    ...settings.map(([key, value]) => `${key} "${value}";`),
    '',
  ].join('\n')
}

export type AptSource = { format: 'sources' | 'list'; withSuite: (suite: string) => string }

/**
 * The machine's own distribution sources (not security or updates, not other vendors' components,
 * none that is trusted without a signature), each usable with another suite of the same mirror.
 */
export function ownSources(aptDir: string, codename: string): AptSource[] {
  const files = [join(aptDir, 'sources.list')]
  const partsDir = join(aptDir, 'sources.list.d')
  if (existsSync(partsDir)) files.push(...readdirSync(partsDir).map((n) => join(partsDir, n)))
  const names = new Set([codename, 'stable', 'testing', 'unstable', 'sid'])
  return files
    .filter((file) => existsSync(file))
    .flatMap((file) => {
      const text = readFileSync(file, 'utf8')
      if (file.endsWith('.sources')) return deb822Sources(text, names)
      return file.endsWith('.list') ? classicSources(text, names) : []
    })
}

function deb822Sources(text: string, names: ReadonlySet<string>): AptSource[] {
  return text
    .split(/\n\s*\n/)
    .map((stanza) => stanza.replace(/^#.*\n?/gm, '').trim())
    .filter((stanza) => {
      const field = (key: string) =>
        (new RegExp(`^${key}:(.*)$`, 'im').exec(stanza)?.[1] ?? '').trim().split(/\s+/)
      return (
        field('Types').includes('deb') &&
        field('Suites').some((suite) => names.has(suite)) &&
        field('Components').includes('main') &&
        !/^(Trusted|Allow-Insecure|Allow-Weak):\s*yes/im.test(stanza) &&
        !/^Enabled:\s*no/im.test(stanza)
      )
    })
    .map((stanza) => ({
      format: 'sources' as const,
      withSuite: (suite: string) =>
        `${stanza.replace(/^Types:.*$/im, 'Types: deb').replace(/^Suites:.*$/im, `Suites: ${suite}`)}\n`,
    }))
}

function classicSources(text: string, names: ReadonlySet<string>): AptSource[] {
  return text
    .split('\n')
    .map((line) => /^deb\s+(\[[^\]]*\]\s+)?(\S+)\s+(\S+)\s+(.+)$/.exec(line.trim()))
    .filter((match) => match !== null)
    .filter((match) => !/\b(trusted|allow-insecure|allow-weak)=yes\b/i.test(match[1] ?? ''))
    .filter((match) => names.has(match[3] ?? '') && (match[4] ?? '').split(/\s+/).includes('main'))
    .map((match) => ({
      format: 'list' as const,
      withSuite: (suite: string) => `deb ${match[1] ?? ''}${match[2]} ${suite} ${match[4]}\n`,
    }))
}

export function readOsRelease(file: string): Record<string, string> {
  if (!existsSync(file)) return {}
  const pairs = readFileSync(file, 'utf8').matchAll(/^([A-Z_]+)="?([^"\n]*)"?$/gm)
  return Object.fromEntries([...pairs].map((pair) => [pair[1], pair[2]]))
}

/** The pinned release archive, rejected unless its checksum is the pinned one. */
function archiveWay(options: FetchOptions): Way {
  const arch = process.arch === 'x64' ? 'amd64' : process.arch
  const target = `${process.platform}-${arch}`
  const pinned = (options.releaseSha256 ?? RELEASE.sha256)[target]
  return {
    name: `release ${RELEASE.version}`,
    fetch: async (workDir) => {
      if (!pinned) throw new Error(`no pinned archive for ${target}`)
      const folder = `nats-server-v${RELEASE.version}-${target}`
      const origin = options.releaseOrigin ?? RELEASE.origin
      const url = `${origin}/v${RELEASE.version}/${folder}.tar.gz`
      options.report(`fetching ${url}`)
      const bytes = await download(url, options.signal)
      const actual = createHash('sha256').update(bytes).digest('hex')
      if (actual !== pinned) throw new Error(`checksum ${actual} is not the pinned ${pinned}`)
      const archive = join(workDir, 'archive.tar.gz')
      await writeFile(archive, bytes)
      await run('tar', ['-xzf', archive, '-C', workDir])
      return join(workDir, folder, 'nats-server')
    },
  }
}

async function download(url: string, signal: AbortSignal | undefined): Promise<Buffer> {
  const silent = new AbortController()
  const timer = setTimeout(
    () => silent.abort(new Error(`no answer within ${CONNECT_TIMEOUT_MS} ms`)),
    CONNECT_TIMEOUT_MS,
  )
  const ends = [silent.signal, AbortSignal.timeout(DOWNLOAD_TIMEOUT_MS)]
  const response = await fetch(url, { signal: AbortSignal.any(signal ? [...ends, signal] : ends) })
  clearTimeout(timer)
  if (!response.ok) throw new Error(`HTTP ${response.status}`)
  return Buffer.from(await response.arrayBuffer())
}

function firstLine(error: unknown): string {
  const { stderr, message } = error as { stderr?: string; message?: string }
  const cause = (error as { cause?: { message?: string } }).cause?.message
  const text = stderr?.trim() || [message, cause].filter(Boolean).join(': ')
  return text.split('\n')[0] ?? 'failed'
}
