/** What alerts say, in words for a customer, with a button that copies them. */
import { toAlertSentence } from '#shared/core/alerts/alert-sentence.ts'
import { Button } from '../../components/button.tsx'
import { useCopy } from '../../components/id.tsx'

export function Sentence({
  reasons,
  score,
}: {
  reasons: readonly { code: string; weight: number }[]
  score: number
}) {
  const sentence = toAlertSentence(reasons, score)
  const [copied, copy] = useCopy()
  return (
    <div className="flex flex-wrap items-center gap-2">
      <p className="min-w-0 max-w-3xl">{sentence}</p>
      <Button
        aria-label={`${copied ? 'Copied' : 'Copy'} the sentence`}
        icon={copied ? 'check' : 'copy'}
        onClick={() => copy(sentence)}
        small
      >
        {copied ? 'Copied' : 'Copy'}
      </Button>
    </div>
  )
}
