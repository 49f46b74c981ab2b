import { useEffect, useRef, useState } from 'preact/hooks';
import type { TransitionRecord } from '../../protocol/index.ts';
import type { Action } from '../api.ts';
import type { Actor } from '../state/actors.ts';
import type { Store } from '../state/store.ts';
import { fullState, lookOf } from '../state/tone.ts';
import { age, duration, humanName, splitPath, timeOfDay } from './format.ts';
import { Mark } from './icons.tsx';

export function Details({ store, actor }: { readonly store: Store; readonly actor: Actor }) {
  const { tone, shape } = lookOf(actor);
  const { head, tail } = splitPath(actor.title);
  const chart = store.charts.value.get(actor.machine);
  const leaf = chart?.nodes.findLast((node) => actor.states.includes(node.id) && node.description !== '');
  return (
    <>
      <section class="card">
        <p class="quiet path" title={actor.title}>
          {head || actor.machine}
        </p>
        <h2>{tail}</h2>
        <p class={`state ${tone}`}>
          <Mark tone={tone} shape={shape} />
          <b>{fullState(actor.states)}</b>
          <span class="age">{age(store.now.value - actor.since.getTime())}</span>
        </p>
        {leaf && <p class="meaning">{leaf.description}</p>}
        {actor.machine === 'agent-server' && <Actions key={actor.id} store={store} actor={actor} />}
        {store.notice.value !== null && (
          <p class="notice" role="alert">
            {store.notice.value}
            <button
              type="button"
              class="plain"
              aria-label="Dismiss"
              onClick={() => {
                store.notice.value = null;
              }}
            >
              ×
            </button>
          </p>
        )}
      </section>
      <Facts actor={actor} />
      <Log actor={actor} dropped={store.actors.value.dropped} />
    </>
  );
}

function Actions({ store, actor }: { readonly store: Store; readonly actor: Actor }) {
  const [asks, setAsks] = useState(false);
  const busy = store.busy.value;
  const isDown = ['stopped', 'exited'].includes(actor.states[0] ?? '');
  const act = (action: Action) => {
    setAsks(false);
    void store.act(action, actor.id, actor.title);
  };
  const button = (action: Action, words: string, onClick: () => void, isOff: boolean) => (
    <button type="button" disabled={isOff || busy !== null} aria-busy={busy?.action === action} onClick={onClick}>
      {words}
    </button>
  );
  if (asks) {
    return (
      <fieldset class="actions asks" aria-label="Confirm stop">
        <span>Stop this agent server?</span>
        <button type="button" class="danger" onClick={() => act('stop')}>
          Stop it
        </button>
        <button type="button" ref={(element) => element?.focus()} onClick={() => setAsks(false)}>
          Keep it
        </button>
      </fieldset>
    );
  }
  return (
    <div class="actions">
      {button('ensure', 'Start', () => act('ensure'), !isDown)}
      {button('restart', 'Restart', () => act('restart'), false)}
      {button('stop', 'Stop', () => setAsks(true), actor.states[0] === 'stopped')}
    </div>
  );
}

function Facts({ actor }: { readonly actor: Actor }) {
  const facts = Object.entries(actor.projection).filter(
    ([name, value]) => !isNothing(value) || (name === 'exitCode' && value === 0),
  );
  if (facts.length === 0) return null;
  return (
    <section>
      <h3>Facts</h3>
      <dl class="facts">
        {facts.map(([name, value]) => (
          <div key={name} class={typeof value === 'string' && value.length > 16 ? 'wide' : ''}>
            <dt>{humanName(name)}</dt>
            <dd>{name.endsWith('Ms') && typeof value === 'number' ? duration(value) : factText(value)}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

/** Counters at zero and things that are not there would only hide the facts that matter. */
const isNothing = (value: Actor['projection'][string]): boolean =>
  value === null || value === '' || value === 0 || value === 'none';

function factText(value: Actor['projection'][string]): string {
  if (value instanceof Date) return value.toLocaleString();
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return String(value);
}

function Log({ actor, dropped }: { readonly actor: Actor; readonly dropped: number }) {
  const list = useRef<HTMLOListElement>(null);
  const isAtEnd = useRef(true);
  const last = actor.log.at(-1)?.step;
  useEffect(() => {
    if (isAtEnd.current && last !== undefined) list.current?.scrollTo({ top: list.current.scrollHeight });
  }, [last]);
  const missing = (actor.log[0]?.step ?? 1) - 1;
  return (
    <section class="log">
      <h3>
        Transitions <span class="quiet">{actor.steps}</span>
      </h3>
      <ol
        ref={list}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        tabIndex={0}
        aria-label="Transitions, oldest first"
        onScroll={({ currentTarget: box }) => {
          isAtEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < 24;
        }}
      >
        {actor.log.length === 0 && (
          <li class="quiet none">Nothing since this page looks{dropped > 0 ? ' (older ones are gone)' : ''}.</li>
        )}
        {missing > 0 && <li class="quiet none">{missing} older not held</li>}
        {actor.log.map((record) => (
          <LogRow key={record.step} record={record} />
        ))}
      </ol>
    </section>
  );
}

function LogRow({ record }: { readonly record: TransitionRecord }) {
  const from = fullState(record.from);
  const to = fullState(record.to);
  const home = record.from[0] === record.to[0] ? `${record.to[0]} · ` : '';
  return (
    <li title={record.at.toISOString()}>
      <time>{timeOfDay(record.at)}</time>
      <b>{record.event}</b>
      <span class="move">
        {from === to ? (
          <span class="quiet">stays in {to}</span>
        ) : (
          <>
            {from} <i>→</i> {to.startsWith(home) ? to.slice(home.length) : to}
          </>
        )}
      </span>
      {record.actions.length > 0 && <span class="does">{record.actions.join(' · ')}</span>}
    </li>
  );
}
