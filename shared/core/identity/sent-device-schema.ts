/**
 * What a submission may tell of its phone, as the OpenAPI document has it. Ingest refuses nothing
 * of it: what has another type is not read, and a sandbox tenant gets a warning.
 */
import { z } from 'zod'
import {
  identifierCharactersMax,
  identifierNameCharactersMax,
  identifiersMax,
  metaCharactersMax,
} from '#shared/core/base/limits/telemetry.ts'

const trait = (description: string, example: string) =>
  z
    .string()
    .max(metaCharactersMax)
    .optional()
    .meta({ description, examples: [example] })
const bytes = (description: string) => z.number().int().min(1).optional().meta({ description })

export const sentDeviceSchema = z
  .looseObject({
    brand: trait('The maker.', 'Google'),
    model: trait('The model.', 'Pixel 9'),
    os_version: trait('The version of the system.', '16'),
    build: trait('The build of the system.', 'BP2A.250605.031.A3'),
    storage_bytes: bytes('The size of the storage, not what is free of it.'),
    memory_bytes: bytes('The size of the memory.'),
    screen: trait('Width and height in pixels, the shorter side first.', '1080x2424'),
    locale: trait('The locale of the system.', 'de-DE'),
    time_zone: trait('The IANA name.', 'Europe/Berlin'),
    carrier: trait('The mobile operator.', 'Telekom'),
    boot_at: z
      .union([z.string(), z.number()])
      .optional()
      .meta({
        description:
          'When the system started: an ISO-8601 time with an offset, or milliseconds since 1970.',
        examples: ['2026-02-27T06:12:45.120Z'],
      }),
    identifiers: z
      .record(
        z.string().regex(new RegExp(`^[a-z0-9_]{1,${identifierNameCharactersMax}}$`)),
        z.string().min(1).max(identifierCharactersMax),
      )
      .optional()
      .meta({
        description:
          `Ids that outlive the install, by a name of your own; at most ${identifiersMax} count. The ` +
          'service keeps a keyed hash of each and no text; placeholders are left out.',
        examples: [{ keychain_id: '6f1c0a52-7d1e-4d7b-9a57-0c2b4f1a7e33' }],
      }),
  })
  .meta({
    description:
      'The phone, to recognise it after the app was installed again. All of it is optional; what has ' +
      'another type is not read.',
  })
