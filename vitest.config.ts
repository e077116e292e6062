import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { chooseFilesFolder } from './test/support/process/files-in-memory.ts'

// Unit tests need no server. The other projects start real servers (nats-server, PostgreSQL, the
// ClickHouse engine) themselves, and wait half of the time: for leases, redeliveries and pages. So
// more of their files run side by side than there are cores. Files that judge how long something
// took have a core each, by limits that tell a moment from a time-out.
const timed = [
  ...['analysts', 'api-outages', 'clickhouse-http-inserts', 'delivery'],
  ...['delivery-process', 'edge-lease', 'ingest-storage', 'outages', 'outbound-hostile'],
  ...['outbound-http', 'rolling', 'rotation', 'rotation-under-load', 'small-stream'],
  ...['starvation', 'strangers'],
].map((name) => `test/integration/*/${name}.test.ts`)

// Tests start hundreds of Node processes, their own among them, which find their files compiled by
// those before.
process.env.NODE_COMPILE_CACHE = join(tmpdir(), 'device-intelligence-compiled')
const env = { TMPDIR: process.env.TMPDIR ?? chooseFilesFolder() }
// Made by the first server of a run that needs it; no other run has its name.
process.env.TEST_TEMPLATES = join(env.TMPDIR, `di-templates-${process.pid}-${Date.now()}`)
// Randomness that is the same in each run.
const setupFiles = ['test/support/process/seed.ts']
// Against a hang only: a machine may be several times slower than another.
const limits = { testTimeout: 300_000, hookTimeout: 300_000 }
const patient = {
  env,
  globalSetup: 'test/support/servers/templates.ts',
  setupFiles,
  ...limits,
}

// A new clone knows nothing of how long files take. The longest first: a long one that started last
// would run alone.
const long = [
  ...[
    'console',
    'consume',
    'delivery-slow-database',
    'openapi-conformance',
    'erasure',
    'pgbouncer',
  ],
  ...[
    'scorer-exactness',
    'cluster',
    'erasure-jobs',
    'strangers',
    'rewrap',
    'isolation',
    'nats-tls',
  ],
  ...['fleet', 'small-stream', 'scorer', 'starvation', 'analysts'],
  ...['reconciliation', 'kills', 'path', 'cli', 'ingest-storage'],
].map((name) => `/${name}.test.ts`)
const toRank = ({ moduleId }: TestSpecification) => {
  const rank = long.findIndex((end) => moduleId.endsWith(end))
  return rank === -1 ? long.length : rank
}

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).sort((a, b) => toRank(a) - toRank(b))
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongFirst },
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          setupFiles,
          // A thousand random cases are a moment on a core of one's own only.
          testTimeout: 60_000,
          // Of two cores it would leave one alone.
          maxWorkers: 2,
          // No test changes a module's state: files share what the one before has loaded.
          isolate: false,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          exclude: timed,
          ...patient,
          maxWorkers: 4,
          isolate: false,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: 'timed',
          include: timed,
          ...patient,
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          name: 'e2e',
          // Once for all files, before the first of them starts a stack.
          globalSetup: 'test/support/console/build-pages.ts',
          include: ['test/e2e/**/*.test.ts'],
          env,
          setupFiles,
          ...limits,
          // Beside integration, with which it must share this number.
          maxWorkers: 4,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
