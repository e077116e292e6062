import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { LongestFirst, RecordSeconds } from './test/support/process/file-seconds.ts'
import { chooseFilesFolder } from './test/support/process/files-in-memory.ts'

// Unit tests need no server. The other projects start real servers (nats-server, PostgreSQL, the
// ClickHouse engine) themselves, and wait half of the time: for leases, redeliveries and pages. So
// more of their files run side by side than there are cores. Files that need a machine which
// answers in a moment, because leases of two seconds must not run out, have a core each.
const timed = [
  ...['analytics/analysts', 'deliveries/delivery', 'deliveries/delivery-process'],
  ...['deploy/clickhouse-http-inserts', 'directory/tenant-directory', 'telemetry/edge-input'],
  'telemetry/ingest-storage',
  ...['telemetry/several-streams', 'tenants/edge-lease', 'tenants/rotation'],
  ...['tenants/rotation-under-load'],
].map((name) => `test/integration/${name}.test.ts`)

// Tests start hundreds of Node processes, their own among them, which find their files compiled by
// those before.
process.env.NODE_COMPILE_CACHE = join(tmpdir(), 'device-intelligence-compiled')
const env = { TMPDIR: process.env.TMPDIR ?? chooseFilesFolder() }
// Made by the first server of a run that needs it; no other run has its name.
process.env.TEST_TEMPLATES = join(env.TMPDIR, `di-templates-${process.pid}-${Date.now()}`)
// Randomness that is the same in each run.
const setupFiles = ['test/support/process/seed.ts']
// Against a hang only: a machine may be several times slower than another.
const limits = { testTimeout: 1_200_000, hookTimeout: 1_200_000 }
const patient = {
  env,
  globalSetup: 'test/support/servers/templates.ts',
  setupFiles,
  ...limits,
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    reporters: process.env.RECORD_SECONDS ? ['default', new RecordSeconds()] : ['default'],
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          setupFiles,
          // A thousand random cases are a moment on a core of one's own only.
          testTimeout: 600_000,
          hookTimeout: 600_000,
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
          sequence: { groupOrder: 3 },
        },
      },
      {
        test: {
          name: 'e2e',
          // Once for all files: the pages, before the first stack starts, and the stack that those
          // of the console share.
          globalSetup: [
            'test/support/console/build-pages.ts',
            'test/support/console/shared-stack.ts',
          ],
          include: ['test/e2e/**/*.test.ts'],
          env,
          setupFiles,
          ...limits,
          // A stack and a browser keep both cores busy.
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
      {
        // What only `npm run test:all` runs: drills, long stories, other runtimes, second modes.
        test: {
          name: 'long',
          include: ['test/long/**/*.test.ts'],
          ...patient,
          globalSetup: [patient.globalSetup, 'test/support/console/build-pages.ts'],
          maxWorkers: 2,
          sequence: { groupOrder: 4 },
        },
      },
    ],
  },
})
