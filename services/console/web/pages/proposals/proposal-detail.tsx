/** One proposal: what it changes, why, and approving, rejecting or withdrawing it. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Button, IconButton } from '../../components/button.tsx'
import { Dialog, DialogActions } from '../../components/dialog.tsx'
import { Textarea } from '../../components/field.tsx'
import { Id } from '../../components/id.tsx'
import { Facts, Panel } from '../../components/page.tsx'
import { CopyLine } from '../../components/secret.tsx'
import { Loaded, Refused } from '../../components/states.tsx'
import { Time } from '../../components/time/time.tsx'
import { toast } from '../../components/toast.tsx'
import { counted } from '../../components/words.ts'
import { useMay, useSignedIn } from '../../shell/operator.ts'
import { ChangeTable } from '../policies/changes.tsx'
import { type Proposal, proposalQuery, useEndProposal } from './proposals.ts'

type Keys = {
  public_api_key?: string
  hmac_secret?: string
  webhook_secret?: string
  /** Of a named key. */
  api_key?: string
}

export function ProposalDetail({
  tenant,
  id,
  onClose,
}: {
  tenant: string
  id: string
  onClose: () => void
}) {
  const proposal = useQuery(proposalQuery(tenant, id))
  const [keys, setKeys] = useState<Keys | null>(null)
  return (
    <Panel
      action={<IconButton icon="close" label="Close the proposal" onClick={onClose} />}
      title="Proposal"
    >
      <Loaded query={proposal}>
        {(shown) => (
          <>
            <p className="px-4 pt-3 font-medium text-lg">{shown.summary}</p>
            <ProposalFacts proposal={shown} />
            {shown.policy !== null && <PolicyChanges policy={shown.policy} />}
            <Actions onKeys={setKeys} proposal={shown} tenant={tenant} />
          </>
        )}
      </Loaded>
      {keys !== null && (
        <Dialog
          description={
            keys.api_key === undefined
              ? 'In force everywhere. You can come back for them for 15 minutes, on the page of the tenant under Integrations.'
              : 'It is shown this once. Give it to who reads it from its program’s secrets.'
          }
          locked
          onClose={() => setKeys(null)}
          open
          title={`The new keys of ${tenant}`}
        >
          {keys.api_key && <CopyLine label="API key" value={keys.api_key} />}
          {keys.public_api_key && <CopyLine label="Public API key" value={keys.public_api_key} />}
          {keys.hmac_secret && <CopyLine label="HMAC secret" value={keys.hmac_secret} />}
          {keys.webhook_secret && <CopyLine label="Webhook secret" value={keys.webhook_secret} />}
          <DialogActions>
            <Button look="primary" onClick={() => setKeys(null)}>
              I have saved them
            </Button>
          </DialogActions>
        </Dialog>
      )}
    </Panel>
  )
}

function ProposalFacts({ proposal }: { proposal: Proposal }) {
  const { subject, alerts } = proposal
  return (
    <Facts
      facts={[
        ['State', proposal.note === null ? proposal.state : `${proposal.state}: ${proposal.note}`],
        ['Why', proposal.reason],
        [
          'Proposed',
          <span key="who">
            {proposal.author}, <Time at={proposal.created_at} />
          </span>,
        ],
        proposal.ended_by === null || proposal.ended_at === null
          ? ['Expires', <Time at={proposal.expires_at} exact key="until" />]
          : [
              'Ended',
              <span key="end">
                {proposal.ended_by}, <Time at={proposal.ended_at} />
              </span>,
            ],
        ...(subject === null
          ? []
          : [
              [
                subject.kind === 'device' ? 'Device' : 'User',
                <Id key="subject" most={40} value={subject.id ?? `SHA-256 ${subject.sha256}`} />,
              ] satisfies [string, React.ReactNode],
            ]),
        ...(alerts === null
          ? []
          : [
              [
                'Alerts',
                `${alerts.proposed} when it was proposed, ${alerts.now} now${alerts.within_margin ? '' : ': too different to approve'}`,
              ] satisfies [string, string],
            ]),
      ]}
    />
  )
}

function PolicyChanges({ policy }: { policy: NonNullable<Proposal['policy']> }) {
  const { changes, backtest } = policy
  return (
    <div className="grid gap-3 px-4 pb-3">
      <p className={backtest === null ? 'text-warn' : undefined}>
        {backtest === null
          ? 'This policy was not backtested.'
          : `Backtest over ${backtest.events.toLocaleString('en')} events, sessions: ${backtest.new} new, ${backtest.gone} gone, ${backtest.stricter} stricter, ${backtest.milder} milder.`}
      </p>
      {backtest !== null && backtest.confirmed_lost > 0 && (
        <p className="text-bad">
          {counted(backtest.confirmed_lost, 'confirmed alert')} lost: nothing raises them any more.
        </p>
      )}
      <ChangeTable changes={changes} />
    </div>
  )
}

function Actions({
  tenant,
  proposal,
  onKeys,
}: {
  tenant: string
  proposal: Proposal
  onKeys: (keys: Keys) => void
}) {
  const { approve, reject, withdraw } = useEndProposal(tenant, proposal.proposal_id)
  const [asked, setAsked] = useState<'approve' | 'reject' | null>(null)
  const [note, setNote] = useState('')
  const isAdmin = useMay('admin')
  const me = useSignedIn().operator.email
  if (proposal.state !== 'open') return null
  const close = () => setAsked(null)
  const onApproved = ({ result }: { result?: unknown }) => {
    close()
    if (['rotation', 'api_key'].includes(proposal.kind)) onKeys(result as Keys)
    toast('Approved, and done.')
  }
  return (
    <div className="flex flex-wrap items-center gap-2 border-line border-t p-4">
      {proposal.may_approve && (
        <Button look="primary" onClick={() => setAsked('approve')}>
          Approve
        </Button>
      )}
      {isAdmin && proposal.author !== me && (
        <Button onClick={() => setAsked('reject')}>Reject</Button>
      )}
      {proposal.author === me && (
        <Button busy={withdraw.isPending} onClick={() => withdraw.mutate()}>
          Withdraw
        </Button>
      )}
      {!proposal.may_approve && (
        <p className="text-muted">
          {proposal.author === me
            ? 'Another administrator must approve it.'
            : 'An administrator can approve it.'}
        </p>
      )}
      <Refused error={withdraw.error} />
      {asked === 'approve' && (
        <Dialog
          description={proposal.summary}
          locked={approve.isPending}
          onClose={close}
          open
          title="Approve this proposal"
        >
          <p>It is carried out at once, with your name and that of {proposal.author}.</p>
          <Refused error={approve.error} />
          <DialogActions>
            <Button disabled={approve.isPending} onClick={close}>
              Cancel
            </Button>
            <Button
              busy={approve.isPending}
              look={proposal.kind === 'policy' ? 'primary' : 'danger'}
              onClick={() => approve.mutate(undefined, { onSuccess: onApproved })}
            >
              Approve
            </Button>
          </DialogActions>
        </Dialog>
      )}
      {asked === 'reject' && (
        <Dialog onClose={close} open title="Reject this proposal">
          <Textarea
            label="Note"
            maxLength={500}
            onChange={({ target }) => setNote(target.value)}
            rows={2}
            value={note}
          />
          <Refused error={reject.error} />
          <DialogActions>
            <Button onClick={close}>Cancel</Button>
            <Button
              busy={reject.isPending}
              look="danger"
              onClick={() => reject.mutate(note, { onSuccess: close })}
            >
              Reject
            </Button>
          </DialogActions>
        </Dialog>
      )}
    </div>
  )
}
