import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { chooseFilesFolder } from './test/support/files-in-memory.ts'

// Unit tests need no server. The other projects start real servers (nats-server, PostgreSQL, the
// ClickHouse engine) themselves. Files that judge how long something took have a core each, by
// limits that tell a moment from a time-out; of the others three run side by side.
const timed = [
  ...['api-outages', 'clickhouse-http-inserts', 'delivery', 'delivery-process', 'edge-lease'],
  ...['ingest-storage', 'outages', 'outbound-hostile', 'outbound-http', 'rotation'],
  ...['rotation-under-load', 'tenant-directory'],
].map((name) => `test/integration/${name}.test.ts`)

// Tests start hundreds of Node processes, which find their files compiled by those before them.
const env = {
  NODE_COMPILE_CACHE: join(tmpdir(), 'device-intelligence-compiled'),
  TMPDIR: process.env.TMPDIR ?? chooseFilesFolder(),
}
const patient = { env, testTimeout: 150_000, hookTimeout: 150_000 }

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          // Of two cores it would leave one alone.
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          exclude: timed,
          ...patient,
          // Servers that start and tests that wait leave a third of two cores to another file.
          maxWorkers: 3,
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
          include: ['test/e2e/**/*.test.ts'],
          env,
          testTimeout: 300_000,
          hookTimeout: 120_000,
          maxWorkers: 2,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
})
