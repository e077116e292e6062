/** Paths for names from clients: bounded per tenant, and reused after they are idle. */
import { expect, it } from 'vitest'
import {
  signalPathBytesMax,
  signalPathIdleMs,
  signalPathsPerTenantMax,
} from '#shared/core/base/limits/telemetry.ts'
import { createSignalPaths } from '#shared/io/telemetry/signal-paths.ts'
import { createNameCheck } from '../../../services/scorer/store/free-signal-names.ts'

let nowMs = 0
const create = () => createSignalPaths(() => nowMs)
const fill = (paths: ReturnType<typeof create>, tenantId: string) => {
  for (let n = 0; n < signalPathsPerTenantMax; n++) {
    expect(paths.admit(tenantId, `root.name_${n}`)).toBe(true)
  }
}

it('a tenant gets a bounded number of paths, independently of others', () => {
  const paths = create()
  fill(paths, 'loud')
  expect(paths.admit('loud', 'root.one_more')).toBe(false)
  expect(paths.admit('loud', 'root.name_0')).toBe(true)
  fill(paths, 'quiet')
})

it('a path is reused for another name when its name was not sent for an hour', () => {
  const paths = create()
  fill(paths, 'acme')
  nowMs += signalPathIdleMs / 2
  for (let n = 1; n < signalPathsPerTenantMax; n++) paths.admit('acme', `root.name_${n}`)
  nowMs += signalPathIdleMs / 2 - 1
  expect(paths.admit('acme', 'root.new')).toBe(false)
  nowMs += 1
  expect(paths.admit('acme', 'root.new')).toBe(true)
  expect(paths.admit('acme', 'root.name_0')).toBe(false)
  expect(paths.admit('acme', 'root.name_1')).toBe(true)
})

it('a tenant with all its paths is listed, and one whose names are freed begins again', async () => {
  const paths = create()
  fill(paths, 'loud')
  paths.admit('quiet', 'root.name')
  expect(paths.listFull()).toEqual(['loud'])
  const asked: (readonly string[])[] = []
  let freed = new Map<string, string>()
  const check = createNameCheck({
    paths,
    readFreed: async (tenantIds) => {
      asked.push(tenantIds)
      return freed
    },
  })
  await check()
  expect(paths.admit('loud', 'root.one_more')).toBe(false)
  freed = new Map([['loud', '2026-03-01T00:00:00.000Z']])
  await check()
  expect(paths.admit('loud', 'root.one_more')).toBe(true)
  // Without a full tenant it does not ask, and one time frees once.
  await check()
  expect(asked).toEqual([['loud'], ['loud']])
  for (let n = 1; n < signalPathsPerTenantMax; n++) paths.admit('loud', `root.name_${n}`)
  await check()
  expect(paths.admit('loud', 'root.two_more')).toBe(false)
})

it('a longer name gets no path', () => {
  const paths = create()
  expect(paths.admit('acme', 'é'.repeat(signalPathBytesMax / 2))).toBe(true)
  expect(paths.admit('acme', 'é'.repeat(signalPathBytesMax / 2 + 1))).toBe(false)
})
