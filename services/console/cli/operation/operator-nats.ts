/** The connection of commands that change streams, with the operator's user `di`. */

import { connectNats, type Nats } from '#shared/io/nats/connection.ts'
import { listPresentStreams } from '#shared/io/nats/streams/restore-streams.ts'
import { natsVariables, readConfig, toNatsSettings } from '#shared/io/process/config.ts'
import { createLog } from '#shared/io/process/log.ts'
import { within } from '#shared/io/process/pause.ts'
import { type CliContext, CliError } from '../context.ts'

const connectMaxMs = 10_000

/**
 * To the NATS of the local stack, or of the settings of the environment. Its telemetry streams are
 * those that the server has.
 */
export async function connectAsOperator({ env, findStack }: CliContext): Promise<Nats> {
  const url = env.NATS_URL || env.NATS_URL_FILE ? {} : { NATS_URL: findStack()?.nats }
  const settings = toNatsSettings(readConfig(natsVariables, { ...env, ...url }))
  const connecting = connectNats(settings, 'di', createLog('di', 'silent'))
  if (await within(connecting, connectMaxMs)) {
    const nats = await connecting
    return { ...nats, telemetryStreams: await listPresentStreams(nats) }
  }
  throw new CliError('NATS cannot be reached. Set NATS_URL with the operator’s user `di`.')
}
