// Reads the version of a nats-server binary, and whether this release works with it.

import { spawnSync } from 'node:child_process'
import { describeOldServer } from '#shared/core/base/server-versions.ts'

export type NatsServerBinary = { file: string; version: string }

/** The version of the program in `file`, or null when it is not a nats-server that runs here. */
export function readNatsVersion(file: string): NatsServerBinary | null {
  const result = spawnSync(file, ['--version'], { encoding: 'utf8', timeout: 10_000 })
  const version = /v(\d+\.\d+\.\d+)/.exec(result.stdout ?? '')?.[1]
  return version ? { file, version } : null
}

/** @returns null, or what is wrong with it: `has version 2.9.10; ...` */
export const findOldBinary = ({ version }: NatsServerBinary): string | null =>
  describeOldServer('NATS', version)
