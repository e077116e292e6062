/** Why a submission was refused, else its code: what is no word of the interface is said in words. */
export const toReasonText = ({ reason, code }: { reason: string | null; code: string }): string =>
  reason === 'retired_secret' ? 'replaced secret' : (reason ?? code)
