import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import {
  describeOldNats,
  describeOldServer,
  isOlder,
  neededByReplicas,
  oldestServers,
} from '#shared/core/base/server-versions.ts'

it.each([
  ['2.15.1', '2.9', false],
  ['2.9.10', '2.9', false],
  ['2.8.4', '2.9', true],
  ['2.9.10', '2.10', true],
  ['v2.10.0-RC.1', '2.10', false],
  ['18.4 (Debian 18.4-1)', '15', false],
  ['14.9', '15', true],
  ['25.2.9.1', '25.3', true],
  ['26.1', '25.3', false],
  ['25', '25.3', true],
  ['unknown', '25.3', false],
])('%s is older than %s: %s', (version, oldest, older) => {
  expect(isOlder(version, oldest)).toBe(older)
})

it('an old server is named with the version that is needed', () => {
  expect(describeOldServer('Postgres', '14.9')).toBe('has version 14.9; 15 or newer is needed')
  expect(describeOldServer('Postgres', '15.1')).toBeNull()
})

it.each<[string, number, string | null]>([
  ['2.10.22', 1, 'has version 2.10.22; 2.10.23 or newer is needed'],
  ['2.10.22', 3, 'has version 2.10.22; 2.10.23 or newer is needed'],
  ['2.10.23', 1, null],
  ['2.11.0', 1, null],
  ['2.13.2', 1, null],
  ['2.12.15', 3, null],
  ['2.14.0', 3, null],
  ['2.15.1', 5, null],
  ['2.12.14', 3, `has version 2.12.14; NATS_REPLICAS=3 needs ${neededByReplicas}`],
  ['2.13.0', 5, `has version 2.13.0; NATS_REPLICAS=5 needs ${neededByReplicas}`],
  ['2.13.20', 3, `has version 2.13.20; NATS_REPLICAS=3 needs ${neededByReplicas}`],
])('nats-server %s for %s replicas: %s', (version, replicas, fault) => {
  expect(describeOldNats(version, replicas)).toBe(fault)
})

it('the pages and configurations name the same versions', () => {
  const read = (path: string) =>
    readFileSync(new URL(`../../../deploy/${path}`, import.meta.url), 'utf8')
      .replaceAll('`', '')
      .replace(/\s+#?\s*/g, ' ')
  const single = `nats-server ${oldestServers.NATS} or newer`
  const several = `nats-server ${neededByReplicas}`
  for (const path of ['README.md', 'nats.conf']) expect(read(path)).toContain(single)
  for (const path of ['README.md', 'cluster/nats.conf', 'helm/files/nats.conf']) {
    expect(read(path)).toContain(several)
  }
  expect(read('README.md')).toContain(`PostgreSQL** ${oldestServers.Postgres} or newer`)
  expect(read('README.md')).toContain(`ClickHouse** ${oldestServers.ClickHouse} or newer`)
})
