/** Corrects phones and undoes it, with what every page shows of them read again. */
import { useQueryClient } from '@tanstack/react-query'
import { toast, toastFailure } from '../../components/toast.tsx'
import { casesKey } from '../case/case.ts'
import { timelineKey } from '../entities/timeline/key.ts'
import { type Correction, correct, type NewCorrection, phonesKey, undo } from './phones.ts'

export function useChangePhones(tenant: string) {
  const client = useQueryClient()
  const refresh = () =>
    Promise.all(
      [
        ...[phonesKey(tenant), ['device', tenant], ['user', tenant], timelineKey(tenant)],
        // Open cases follow.
        ...[
          casesKey(tenant),
          ['case'],
          ['case-alerts'],
          ['case-counts', tenant],
          ['cases-of', tenant],
        ],
      ].map((queryKey) => client.invalidateQueries({ queryKey })),
    )
  const undoOne = async ({ correction_id: id }: Pick<Correction, 'correction_id'>) => {
    try {
      await undo(tenant, id)
      toast('The correction is undone.')
    } catch (error) {
      toastFailure(`The correction was not undone: ${(error as Error).message}`)
    }
    await refresh()
  }
  const correctOne = async (wanted: NewCorrection) => {
    const made = await correct(tenant, wanted)
    await refresh()
    const text =
      made.kind === 'split' ? 'The install is a phone of its own.' : 'The install is joined.'
    toast(text, { onUndo: () => void undoOne(made) })
    return made
  }
  return { correctOne, undoOne }
}
