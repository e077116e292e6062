/** A phone as operators investigate it, and their corrections of which installs are on it. */
import { phoneReadLimits } from '#shared/core/base/limits/entities.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { toPhone } from '#shared/core/identity/phone-answer.ts'
import { readAlertWork } from '#shared/io/alerts/alert-work-store.ts'
import { countVerdicts } from '#shared/io/alerts/verdict-counts.ts'
import { rejectUnavailable } from '#shared/io/clickhouse/unavailable.ts'
import type { QueryLimiter } from '#shared/io/http/limit-queries.ts'
import { correctPhone, listCorrections, undoCorrection } from '#shared/io/identity/correct-phone.ts'
import { createPhoneAlerts } from '#shared/io/identity/phone-alerts.ts'
import type { PhoneStore } from '#shared/io/identity/phone-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import { withWork } from '../alerts/show-alert.ts'
import { actorOf, type ConsoleApp } from '../http/admin-app.ts'
import { changeOnce } from '../http/answer-once.ts'
import { tenantParams } from '../http/schemas.ts'
import { requireTenant } from '../tenants/manage-tenants.ts'
import {
  correctionBody,
  correctionParams,
  correctionSchema,
  phonePageSchema,
  phoneParams,
} from './phone-schemas.ts'

export type PhoneRouteDeps = { postgres: Postgres; phones: PhoneStore; limited: QueryLimiter }

type PhoneKey = { tenantId: string; phoneId: string }
type DeviceKey = { tenantId: string; deviceId: string }

const reject = rejectUnavailable('Phones cannot be read at the moment.')

/** Adds the routes. */
export function addPhoneRoutes(app: ConsoleApp, deps: PhoneRouteDeps): void {
  addPhone(app, deps)
  addCorrection(app, deps)
  addUndo(app, deps)
}

function addPhone(app: ConsoleApp, { postgres, phones, limited }: PhoneRouteDeps): void {
  const readPhone = limited('phone', phoneReadLimits, (query: PhoneKey) => phones.readPhone(query))
  const { listPhoneAlerts } = createPhoneAlerts(postgres)
  app.get(
    '/tenants/:tenant_id/phones/:phone_id',
    {
      schema: {
        operationId: 'findPhone',
        conditional: true,
        tags: ['Entities'],
        summary: 'A phone: its installs, users, alerts and corrections',
        params: phoneParams,
        problems: ['phone_not_found'],
        response: { 200: phonePageSchema },
      },
    },
    async ({ params: { tenant_id: tenantId, phone_id: phoneId } }) => {
      await requireTenant(postgres, tenantId)
      const phone = await readPhone({ tenantId, phoneId }).catch(reject)
      if (phone === null) throw new Problem('phone_not_found', 'No install is on this phone.')
      const deviceIds = phone.installs.map(({ deviceId }) => deviceId)
      const [{ alerts, total }, verdicts, corrections] = await Promise.all([
        listPhoneAlerts({ tenantId, deviceIds }),
        countVerdicts(postgres, tenantId, { kind: 'device', ids: deviceIds }),
        listCorrections(postgres, { tenantId, phoneId, deviceIds }),
      ])
      const ids = alerts.map((alert) => alert.alert_id)
      const work = await readAlertWork(postgres, tenantId, ids)
      const data = alerts.map((alert) => withWork(alert, work.get(alert.alert_id)))
      return { phone: toPhone(phone), alerts: { total, verdicts, data }, corrections }
    },
  )
}

function addCorrection(app: ConsoleApp, { postgres, phones, limited }: PhoneRouteDeps): void {
  const findDecidedLink = limited('phone_link', phoneReadLimits, (query: DeviceKey) =>
    phones.findDecidedLink(query),
  )
  const countInstalls = limited('phone_installs', phoneReadLimits, (query: PhoneKey) =>
    phones.countDecidedInstalls(query),
  )
  app.post(
    '/tenants/:tenant_id/phone-corrections',
    {
      schema: {
        operationId: 'correctPhone',
        idempotency: 'kept',
        tags: ['Entities'],
        summary: 'Join an install to a phone, or split it off',
        description:
          'It counts for what is received from now on, and in every answer; alerts keep the phone ' +
          'that they were raised with. Where cases are of phones, its alerts in the open case of ' +
          'the phone that it leaves go to the case of the phone that it comes to, as a new alert ' +
          'would; a case without other alerts goes there as a whole. Closed cases stay, and so ' +
          'does what was merged or split by hand. An undo does the same. The first install of a phone cannot be split off: split the ' +
          'others.',
        params: tenantParams,
        body: correctionBody,
        problems: ['device_not_found', 'phone_not_found', 'phone_changed', 'conflict'],
        response: { 201: correctionSchema },
      },
    },
    async (request, reply) => {
      const { tenant_id: tenantId } = request.params
      const { device_id: deviceId, phone_id: phoneId, reason, expected_phone_id } = request.body
      await requireTenant(postgres, tenantId)
      // A link never changes and a phone only grows, so they are read outside the transaction.
      const [link, targetInstalls] = await Promise.all([
        findDecidedLink({ tenantId, deviceId }).catch(reject),
        phoneId === null ? 0 : countInstalls({ tenantId, phoneId }).catch(reject),
      ])
      if (link === null) {
        throw new Problem(
          'device_not_found',
          'No event of this device told phones apart, or there is no telemetry of it.',
        )
      }
      const wanted = {
        tenantId,
        deviceId,
        phoneId,
        reason,
        actor: actorOf(request.principal),
        expectedPhoneId: expected_phone_id,
        decided: { phoneId: link.phoneId, targetInstalls },
      }
      const made = await changeOnce(postgres, { request, reply }, (db) => correctPhone(db, wanted))
      return reply.code(201).send(made)
    },
  )
}

function addUndo(app: ConsoleApp, { postgres }: PhoneRouteDeps): void {
  app.post(
    '/tenants/:tenant_id/phone-corrections/:correction_id/undo',
    {
      schema: {
        operationId: 'undoPhoneCorrection',
        idempotency: 'kept',
        tags: ['Entities'],
        summary: 'Undo a correction: the one before it counts again, or what the service decided',
        params: correctionParams,
        problems: ['phone_correction_not_found', 'conflict'],
        response: { 200: correctionSchema },
      },
    },
    async (request, reply) => {
      const { tenant_id: tenantId, correction_id: correctionId } = request.params
      await requireTenant(postgres, tenantId)
      const wanted = { tenantId, correctionId, actor: actorOf(request.principal) }
      return changeOnce(postgres, { request, reply }, (db) => undoCorrection(db, wanted))
    },
  )
}
