/** Declares the codes of labels that a tenant uses beside those of every tenant. */
import { labelCodesMax } from '#shared/core/base/limits/outcomes.ts'
import { Problem } from '#shared/core/http/problem.ts'
import type { LabelCode } from '#shared/core/outcomes/label-codes.ts'
import type { Outcome } from '#shared/core/outcomes/labels.ts'
import { insertAudit } from '#shared/io/postgres/audit-store.ts'
import type { Session } from '#shared/io/postgres/postgres.ts'
import { deleteLabelCode, insertLabelCode } from './label-code-store.ts'

type Change = { tenantId: string; actor: string; code: string }

/**
 * Declares a code. Labels keep the meaning that they were received with, so a code that has some
 * cannot mean something else.
 * @throws Problem conflict when it means something else, and when the tenant has too many codes
 */
export async function declareLabelCode(
  postgres: Session,
  { means, actor, tenantId, code }: Change & { means: Outcome },
): Promise<LabelCode> {
  return postgres.transaction(async (tx) => {
    const now = await insertLabelCode(tx, { tenantId, code, means, most: labelCodesMax })
    if (now === null) {
      throw new Problem('conflict', `A tenant has at most ${labelCodesMax} codes of its own.`)
    }
    if (now !== means) {
      throw new Problem(
        'conflict',
        `Labels of the code ${code} count as ${now}. Declare another code for ${means}.`,
      )
    }
    await insertAudit(tx, {
      actor,
      tenantId,
      action: 'label_code.declared',
      after: { code, means },
    })
    return { code, means, is_declared: true }
  })
}

/**
 * Takes a code from those that new labels may have. Its labels stay.
 * @throws Problem label_code_not_found
 */
export async function removeLabelCode(
  postgres: Session,
  { tenantId, actor, code }: Change,
): Promise<void> {
  await postgres.transaction(async (tx) => {
    if (!(await deleteLabelCode(tx, tenantId, code))) {
      throw new Problem('label_code_not_found', 'The tenant has not declared this code.')
    }
    await insertAudit(tx, { actor, tenantId, action: 'label_code.removed', before: { code } })
  })
}
