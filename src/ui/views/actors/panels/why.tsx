import { actionWords, clauseWords, noWords } from '../../../../inspect/browser.ts';
import { duration, timeOfDay } from '../../../parts/format.ts';
import { fullState } from '../../../parts/tone.ts';
import type { PanelProps, Store } from '../store.ts';
import { explain, type Reason } from '../why.ts';
import { whySentence } from '../why-text.ts';

/** Explains how the actor got into its state, from the last stable state before it. */
export function WhyPanel({ store, actor }: PanelProps) {
  const { from, reasons, isCut } = explain(actor, store.chart.value);
  const state = fullState(actor.states);
  if (!from) {
    return (
      <p class="none">
        It has been in <b>{state}</b> since it was made
        {actor.log.length > 0 ? '; later events have changed nothing' : ''}.
      </p>
    );
  }
  return (
    <div class="why">
      <p class="lead">{whySentence(actor, reasons)}</p>
      <p>
        {isCut && <span class="quiet">Earlier records are no longer held. </span>}
        It was <b>{fullState(from.states)}</b>
        {from.heldMs !== null && ` for ${duration(from.heldMs)}`}, then:
      </p>
      <ol>
        {reasons.map((reason) => (
          <Link key={reason.entry.record.step} store={store} reason={reason} />
        ))}
      </ol>
      <p>
        So it is <b>{state}</b>
        {actor.ending
          ? ', and has ended in it.'
          : `, since ${timeOfDay(actor.since)} (${duration(store.clock.value - actor.since.getTime())}).`}
      </p>
      {actor.ending?.error != null && <p class="danger">It crashed: {actor.ending.error}</p>}
    </div>
  );
}

const ordinal = new Intl.PluralRules('en', { type: 'ordinal' });
const endings: Readonly<Record<string, string>> = { one: 'st', two: 'nd', few: 'rd' };
const nthOf = (nth: number): string => `${nth}${endings[ordinal.select(nth)] ?? 'th'}`;

function Link({ store, reason }: { readonly store: Store; readonly reason: Reason }) {
  const { entry, nth, because, after } = reason;
  const { record } = entry;
  const words = store.drawings.value?.words ?? noWords;
  const sender = record.source === null ? undefined : store.travel.base.value.byId.get(record.source);
  return (
    <li>
      <button type="button" class="link mono" title="Look back to this step" onClick={() => store.travel.look(entry)}>
        {timeOfDay(record.at)}
      </button>{' '}
      <b class="mono">{record.event}</b>
      {nth > 1 && ` (${nthOf(nth)} in a row)`}
      {sender && <span class="quiet"> from {sender.title}</span>} → <b>{fullState(record.to)}</b>
      {because.length > 0 && (
        <span class="because">
          {' '}
          because{' '}
          <span title={because.join(' and ')}>{because.map((guard) => clauseWords(words, guard)).join(' and ')}</span>
        </span>
      )}
      {record.actions.length > 0 && (
        <span class="does" title={record.actions.join(', ')}>
          {record.actions.map((name) => actionWords(words, name)).join(' · ')}
        </span>
      )}
      {after.length > 0 && (
        <span class="quiet then">
          then {after.map(({ event, times }) => (times > 1 ? `${event} ×${times}` : event)).join(', ')}, which changed
          no state
        </span>
      )}
    </li>
  );
}
