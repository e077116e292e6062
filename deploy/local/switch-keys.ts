// A data folder of a release where every process had the master key: before the other processes
// start, which have only their own keys, the console seals and signs everything for them.

import { readKeyForm } from '#shared/io/keys/key-form.ts'
import { createPostgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import type { ConsoleCall } from './console-call.ts'
import { StartError } from './stack/settings.ts'

/** Whether the data is still in the form before; after the migrations. */
export async function needsSwitch(postgresUrl: string): Promise<boolean> {
  const log = createLog('start', 'silent')
  const postgres = createPostgres(postgresUrl, { role: 'start', connectionsMax: 1, log })
  try {
    return (await readKeyForm(postgres)) !== 'new'
  } finally {
    await postgres.close()
  }
}

/** A call works for about twenty seconds, so it is repeated while it makes progress. */
export async function switchKeys(call: ConsoleCall): Promise<void> {
  for (let left = Number.POSITIVE_INFINITY; left > 0; ) {
    const { status, body } = await call('POST', '/secrets/rewrap')
    const { remaining = left, detail } = body as { remaining?: number; detail?: string }
    if (status !== 200 || remaining >= left) {
      const why = detail ?? `${remaining} tenants or operators could not be done`
      throw new StartError(`the secrets could not be sealed for each process: ${why}`)
    }
    left = remaining
  }
}
