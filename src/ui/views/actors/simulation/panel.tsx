import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { guardWords, type Words } from '../../../../inspect/browser.ts';
import { duration } from '../../../parts/format.ts';
import type { Store } from '../store.ts';
import { useFocusInsteadOf } from '../use-focus.ts';
import { type Candidate, type Choice, eventsOf, type SimulatedStep, timersOf } from './engine.ts';
import type { Simulated, SimulationSession } from './session.ts';

interface PanelProps {
  readonly session: SimulationSession;
  readonly simulated: Simulated;
  readonly words: Words;
}

/** Banner of the simulation, with a button that leaves it. */
export function SimulationBanner({ store }: { readonly store: Store }) {
  const { simulation } = store;
  return (
    <div class="simulation-banner" role="status">
      <b>Simulation: the real actor is not touched</b>
      <button type="button" onClick={() => simulation.reset()}>
        Reset
      </button>
      <button type="button" onClick={() => simulation.leave()}>
        Leave
      </button>
    </div>
  );
}

/** Events to send to the copy, its clock, and its steps so far. */
export function SimulationPanel({ session, simulated, words }: PanelProps) {
  const { machine, present } = simulated;
  const events = eventsOf(machine, present);
  const panel = useRef<HTMLElement>(null);
  useFocusInsteadOf(panel, present);
  // The button that began it is gone.
  useEffect(() => panel.current?.focus({ preventScroll: true }), []);
  return (
    <section ref={panel} class="next-events simulation" aria-label="Simulation" tabIndex={-1}>
      {present.choice ? (
        <ChoiceList session={session} choice={present.choice} words={words} />
      ) : (
        <>
          <h2>Send to the copy</h2>
          {events.length === 0 && <p class="quiet">Nothing: this is a final state.</p>}
          <div class="sends">
            {events.map((event) => (
              <button key={event} type="button" class="mono" onClick={() => session.send(event)}>
                {event}
              </button>
            ))}
          </div>
          {present.ignored !== null && <p>It ignores {present.ignored} here: no condition holds.</p>}
          <Clock session={session} simulated={simulated} />
        </>
      )}
      <Steps steps={present.steps} />
    </section>
  );
}

interface ChoiceListProps {
  readonly session: SimulationSession;
  readonly choice: Choice;
  readonly words: Words;
}

function ChoiceList({ session, choice, words }: ChoiceListProps) {
  return (
    <>
      <h2>{choice.event === 'always' ? 'It decides by itself' : choice.event}: which way?</h2>
      <p class="quiet">The conditions depend on facts that do not leave the process.</p>
      <ol>
        {choice.candidates
          .filter(({ verdict }) => verdict !== 'no')
          .map((candidate) => (
            <li key={candidate.id}>
              <button type="button" onClick={() => session.choose(candidate.id)}>
                {candidate.target === null ? 'Stay' : `Go to ${candidate.target.split('.').join(' · ')}`}
              </button>{' '}
              {conditionOf(candidate, words)}
            </li>
          ))}
      </ol>
    </>
  );
}

function conditionOf({ guard, verdict, missing }: Candidate, words: Words): string {
  if (guard === null) return 'otherwise';
  return `${guardWords(words, guard)}: ${verdict === 'yes' ? 'holds' : `unknown${missing === null ? '' : `, needs “${missing}”`}`}`;
}

function Clock({ session, simulated: { machine, present } }: Omit<PanelProps, 'words'>) {
  const seconds = useSignal(10);
  const timers = timersOf(machine, present);
  return (
    <form
      class="clock"
      onSubmit={(event) => {
        event.preventDefault();
        session.advance(seconds.value * 1_000);
      }}
    >
      <span>Clock: {duration(present.now)}</span>
      <label>
        Advance by{' '}
        <input
          type="number"
          min="1"
          max="86400"
          value={seconds.value}
          onInput={({ currentTarget }) => {
            seconds.value = Math.max(0, Number(currentTarget.value));
          }}
        />{' '}
        s
      </label>
      <button type="submit">Advance</button>
      {timers.map(({ event, due }) => (
        <span key={event} class="quiet">
          {event} {due === null ? 'after a time that is unknown' : `in ${duration(Math.max(0, due - present.now))}`}
        </span>
      ))}
    </form>
  );
}

function Steps({ steps }: { readonly steps: readonly SimulatedStep[] }) {
  if (steps.length === 0) return null;
  return (
    <>
      <h2>Steps</h2>
      <ol class="simulated-steps">
        {steps.map((step, index) => (
          <li key={`${index}:${step.edge}`}>
            {index + 1}. <b class="mono">{step.event}</b> → {step.to.split('.').join(' · ')}{' '}
            <span class="quiet">at {duration(step.at)}</span>
          </li>
        ))}
      </ol>
    </>
  );
}
