/** What is in the image: its files, beside those of its base, and its configuration. */
import { type Dirent, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { podman } from './podman.ts'

export type ImageConfig = {
  User: string
  WorkingDir: string
  Env: string[]
  Cmd: string[]
  Volumes?: object
}

export type ImageFacts = {
  config: ImageConfig
  /** The command of its own health check. */
  healthcheck: string[]
  /** Paths below /app, with `node_modules` itself and nothing in it. */
  files: string[]
  /** Paths below /app of what a process could change, or what does not belong to root. */
  changeable: string[]
  /** Paths below /app of packages, as in the lock file. */
  packages: string[]
  /** Files below /app that have a private key. */
  keys: string[]
  /** Paths outside /app that the base image does not have, or has otherwise. */
  besideBase: string[]
  bytes: number
}

export async function readImage(name: string, base: string): Promise<ImageFacts> {
  const [image] = JSON.parse(await podman(['image', 'inspect', name])) as [
    { Config: ImageConfig; Healthcheck?: { Test: string[] }; Size: number },
  ]
  try {
    const root = await podman(['image', 'mount', name])
    const baseRoot = await podman(['image', 'mount', base])
    const app = join(root, 'app')
    const entries = listBelow(app, '')
    const own = entries.map(({ path }) => path).filter((path) => !isInPackage(path))
    return {
      config: image.Config,
      healthcheck: image.Healthcheck?.Test ?? [],
      files: own,
      changeable: entries.filter(({ path, entry }) => mayChange(app, path, entry)).map(toPath),
      packages: entries
        .filter(({ path }) => isPackage(path))
        .map(({ path }) => path.replace(/\/package\.json$/, '')),
      keys: entries
        .filter(({ path, entry }) => entry.isFile() && !isInPackage(path))
        .filter(({ path }) => hasKey(readFileSync(join(app, path), 'latin1')))
        .map(toPath),
      besideBase: listChanges(root, baseRoot),
      bytes: image.Size,
    }
  } finally {
    await podman(['image', 'unmount', name, base])
  }
}

type Found = { path: string; entry: Dirent }
const toPath = ({ path }: Found) => path

const isInPackage = (path: string) => path.startsWith('node_modules/')
const isPackage = (path: string) =>
  /(^|\/)node_modules\/(@[^/]+\/)?[^/]+\/package\.json$/.test(path)

/** A key, and not a program that can write one. */
const hasKey = (text: string) => /-----BEGIN [A-Z ]*PRIVATE KEY-----\s+[\w+/=]{20}/.test(text)

function mayChange(app: string, path: string, entry: Dirent): boolean {
  const { uid, mode } = lstatSync(join(app, path))
  return uid !== 0 || (!entry.isSymbolicLink() && (mode & 0o022) !== 0)
}

function listBelow(root: string, folder: string): Found[] {
  const entries = readdirSync(join(root, folder), { withFileTypes: true })
  return entries.flatMap((entry) => {
    const path = join(folder, entry.name)
    const found = { path, entry }
    return entry.isDirectory() ? [found, ...listBelow(root, path)] : [found]
  })
}

/** What a path is, as far as a layer can change it. */
function describePath(file: string, entry: Dirent): string {
  const { mode, uid, gid, size } = lstatSync(file)
  return [mode, uid, gid, entry.isDirectory() ? '' : size].join(' ')
}

function listChanges(root: string, baseRoot: string): string[] {
  const read = (folder: string) =>
    new Map(
      readdirSync(folder)
        .filter((name) => name !== 'app')
        .flatMap((name): Found[] => {
          const file = join(folder, name)
          const entry = readdirSync(folder, { withFileTypes: true }).find((e) => e.name === name)!
          const own = { path: name, entry }
          return lstatSync(file).isDirectory() ? [own, ...listBelow(folder, name)] : [own]
        })
        .map(({ path, entry }) => [path, describePath(join(folder, path), entry)]),
    )
  const [own, base] = [read(root), read(baseRoot)]
  const paths = new Set([...own.keys(), ...base.keys()])
  return [...paths].filter((path) => own.get(path) !== base.get(path))
}

/** What the Dockerfile copies and makes. */
const appEntries =
  '.compiled LICENSE clickhouse node_modules package.json postgres services shared'.split(' ')
const variables = /^(PATH|NODE_ENV|NODE_COMPILE_CACHE|MALLOC_ARENA_MAX|\w+_LISTEN)$/

type Lock = { packages: Record<string, { dev?: true; optional?: true; devOptional?: true }> }

/**
 * @param lock the text of package-lock.json
 * @returns by promise, what breaks it
 */
export function judgeContents(facts: ImageFacts, lock: string): [string, string[]][] {
  const { config, files, packages } = facts
  const needed = Object.entries((JSON.parse(lock) as Lock).packages)
    .filter(([path, { dev, optional, devOptional }]) => path && !dev && !optional && !devOptional)
    .map(([path]) => path)
  const names = config.Env.map((line) => line.split('=')[0]!)
  return [
    [
      'has what the Dockerfile copies',
      differ(
        files.filter((path) => !path.includes('/')),
        appEntries,
      ),
    ],
    ['has no development dependency', differ(packages, needed)],
    [
      'has no test and no simulated fleet',
      files.filter((path) => /\.test\.tsx?$|(^|\/)tests?\/|^deploy\/fleet/.test(path)),
    ],
    [
      'has no secret',
      [
        ...files.filter((path) => /(^|\/)(\.env|\.npmrc|secrets)(\/|$)|\.(pem|key)$/.test(path)),
        ...facts.keys,
        ...names.filter((name) => !variables.test(name)),
      ],
    ],
    [
      "has the console's pages",
      ['index.html', 'assets']
        .map((name) => `services/console/web/dist/${name}`)
        .filter((path) => !files.includes(path)),
    ],
    ['has no program file that a process could change', facts.changeable],
    ['changes nothing of its base image', facts.besideBase],
    [
      'runs as `node`, and its command is ingest',
      differ(
        [config.User, config.WorkingDir, ...config.Cmd, ...Object.keys(config.Volumes ?? {})],
        ['node', '/app', 'node', 'services/ingest/main.ts'],
      ),
    ],
  ]
}

/** What one list has and the other does not, with the number of such when they are many. */
function differ(own: readonly string[], expected: readonly string[]): string[] {
  return [
    ...own.filter((one) => !expected.includes(one)).map((one) => `unexpected ${one}`),
    ...expected.filter((one) => !own.includes(one)).map((one) => `without ${one}`),
  ]
}
