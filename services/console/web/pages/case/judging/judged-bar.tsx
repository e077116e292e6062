/**
 * What was judged last, and what can be done with it in the same breath: deny or allow it, label
 * it, undo. It stays until the next judgement, so that no key acts on another case than it names.
 */
import { toVisible } from '#shared/core/base/visible-text.ts'
import { Button, IconButton, Spinner } from '../../../components/button.tsx'
import { classes } from '../../../components/classes.ts'
import { controlClasses } from '../../../components/field.tsx'
import { cutMiddle } from '../../../components/id.tsx'
import { counted } from '../../../components/words.ts'
import { dispositionText } from '../../alert/disposition.tsx'
import { subjectNames } from '../case-words.ts'
import { type Also, alsoKeys, expiries, type Judged, labelOf, type useJudging } from './judging.ts'

export function JudgedBar({
  judged,
  judging: { expiry, setExpiry, also, undo, dismiss },
}: {
  judged: Judged
  judging: ReturnType<typeof useJudging>
}) {
  const { shown, to, isSaved, alerts } = judged
  const label = labelOf(to)
  return (
    <section
      aria-label="Judged"
      className="flex shrink-0 flex-wrap items-center gap-x-3 gap-y-1.5 border-line border-t bg-panel px-4 py-2 lg:px-6"
    >
      <span className="flex min-w-0 items-center gap-2" role="status">
        {!isSaved && <Spinner />}
        <span className="min-w-0">
          {isSaved ? 'Saved: ' : 'Saving: '}
          {subjectNames[shown.subject.kind].toLowerCase()}{' '}
          <bdi className="font-mono text-sm" translate="no">
            {cutMiddle(toVisible(shown.subject.id), 24)}
          </bdi>
          , {counted(alerts, 'alert')} {dispositionText(to).toLowerCase()}
        </span>
      </span>
      {isSaved && (
        <span className="ml-auto flex flex-wrap items-center gap-1.5">
          <AlsoButton also={also} judged={judged} what="deny">
            {judged.also.deny === 'saved' ? 'Denied' : 'Deny'}
          </AlsoButton>
          <AlsoButton also={also} judged={judged} what="allow">
            {judged.also.allow === 'saved' ? 'Allowed' : 'Allow'}
          </AlsoButton>
          <select
            aria-label="For how long"
            className={classes(controlClasses, 'h-7 w-auto! text-sm')}
            onChange={({ target }) => setExpiry(target.value)}
            value={expiry}
          >
            {Object.entries(expiries).map(([value, { text }]) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
          {label !== null && (
            <AlsoButton also={also} judged={judged} what="label">
              {`${judged.also.label === 'saved' ? 'Labelled' : 'Label'} ${label}`}
            </AlsoButton>
          )}
          <Button onClick={undo} small>
            Undo
            <Key name="u" />
          </Button>
          <IconButton icon="close" label="Dismiss" onClick={dismiss} />
        </span>
      )}
    </section>
  )
}

function AlsoButton({
  what,
  judged,
  also,
  children,
}: {
  what: Also
  judged: Judged
  also: (what: Also) => void
  children: string
}) {
  const state = judged.also[what]
  return (
    <Button
      aria-keyshortcuts={alsoKeys[what]}
      busy={state === 'saving'}
      disabled={state === 'saved'}
      {...(state === 'saved' ? { icon: 'check' as const } : {})}
      onClick={() => also(what)}
      small
    >
      {children}
      {state === undefined && <Key name={alsoKeys[what]} />}
    </Button>
  )
}

const Key = ({ name }: { name: string }) => (
  <kbd className="font-sans text-muted text-xs uppercase">{name}</kbd>
)
