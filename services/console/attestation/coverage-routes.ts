/**
 * The route that says how far a tenant's fleet attests: who looks at it decides whether the shared
 * secret can be switched off, and finds what keeps phones from attesting.
 */
import { z } from 'zod'
import { dayMs, toIso } from '#shared/core/base/instants.ts'
import {
  coverageDaysMax,
  coverageLimits,
  coverageReasonsMax,
  coverageVersionsMax,
  sharedKeysShownMax,
} from '#shared/core/base/limits/analytics.ts'
import { keyKinds } from '#shared/core/installs/shared-keys.ts'
import { rejectUnavailable } from '#shared/io/clickhouse/unavailable.ts'
import type { QueryLimiter } from '#shared/io/http/limit-queries.ts'
import type { CoveredEvents, ReadCoverage } from '#shared/io/installs/coverage-store.ts'
import type { Queryable } from '#shared/io/postgres/postgres.ts'
import type { ConsoleApp } from '../http/admin-app.ts'
import { limitSchema, tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'

export type CoverageRouteDeps = {
  postgres: Queryable
  readCoverage: ReadCoverage
  limited: QueryLimiter
  /** The wall clock. */
  wallMs: () => number
}

const count = z.number().int()
const covered = {
  events: count,
  install_key: count.describe('signed with an install key'),
  verified: count.describe('of an install whose evidence held'),
  rejected: count.describe('of an install whose evidence did not hold, or with such evidence'),
  missing: count.describe('without an install token'),
}

const coverageSchema = z.object({
  tenant_id: z.string(),
  from: z.string(),
  to: z.string(),
  totals: z.object(covered),
  version_count: count.describe('SDK versions by platform in this time'),
  versions: z
    .array(z.object({ platform: z.string(), sdk_version: z.string(), ...covered }))
    .describe(`most events first, at most ${coverageVersionsMax}`),
  reasons: z
    .array(
      z.object({
        provider: z.string(),
        reason: z.string(),
        registrations: count,
        devices: count,
        last_at: z.string(),
      }),
    )
    .describe(
      `why registrations were rejected, most often first, at most ${coverageReasonsMax}; ` +
        'devices are exact to tens of thousands',
    ),
  shared_keys: z
    .array(
      z.object({
        kind: z
          .enum(keyKinds)
          .describe(
            'key: an attested key on several phones; remote_issuer: a certificate of one phone ' +
              'on several; issuer: a certificate of a batch on more models than a product has',
          ),
        id: z.string().describe('the hash of the key or certificate, as the views have it'),
        count: count.describe('on how many phones it ever was, or models for issuer'),
        devices: count.describe('that registered with it in this time'),
        last_at: z.string(),
      }),
    )
    .describe(
      'leaked or copied keys of verified registrations in this time, on most devices or models ' +
        `first, at most ${sharedKeysShownMax}`,
    ),
})

/** Adds the route. */
export function addCoverageRoute(app: ConsoleApp, deps: CoverageRouteDeps): void {
  const read = deps.limited('attestation_coverage', coverageLimits, deps.readCoverage)
  app.get(
    '/tenants/:tenant_id/attestation-coverage',
    {
      schema: {
        operationId: 'findAttestationCoverage',
        tags: ['Attestation'],
        summary: 'How far a fleet attests, by SDK version, and what keeps phones from it',
        description:
          'Look at it before you switch the shared secret off: events without an install key are ' +
          'refused then.',
        params: tenantParams,
        querystring: z.strictObject({
          days: limitSchema(coverageDaysMax, coverageDaysMax).describe('days to look back'),
        }),
        response: { 200: coverageSchema },
      },
    },
    async ({ params: { tenant_id: tenantId }, query: { days } }) => {
      await requireTenant(deps.postgres, tenantId)
      const toMs = deps.wallMs()
      const fromMs = toMs - days * dayMs
      const found = await read({ tenantId, fromMs, toMs }).catch(
        rejectUnavailable(
          'The telemetry cannot be read in time. Ask for fewer days: ' +
            '`di attestation coverage SLUG --days 1`.',
        ),
      )
      return {
        tenant_id: tenantId,
        from: toIso(fromMs),
        to: toIso(toMs),
        totals: toCovered(found.totals),
        version_count: found.versionCount,
        versions: found.versions.map(({ platform, sdkVersion, ...events }) => ({
          platform,
          sdk_version: sdkVersion,
          ...toCovered(events),
        })),
        reasons: found.reasons.map(({ lastAtMs, ...one }) => ({
          ...one,
          last_at: toIso(lastAtMs),
        })),
        shared_keys: found.sharedKeys.map(({ lastAtMs, ...one }) => ({
          ...one,
          last_at: toIso(lastAtMs),
        })),
      }
    },
  )
}

const toCovered = ({ events, installKey, verified, rejected, missing }: CoveredEvents) => ({
  events,
  install_key: installKey,
  verified,
  rejected,
  missing,
})
