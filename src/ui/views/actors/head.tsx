import { age, duration, humanName } from '../../parts/format.ts';
import { Mark } from '../../parts/icons.tsx';
import { Banner } from '../../parts/state-banner.tsx';
import { fullState, lookOf } from '../../parts/tone.ts';
import { type Action, actionsOn, actWords } from '../../parts/workspace-acts.ts';
import type { Fact } from './diff.ts';
import { factText } from './facts.ts';
import type { Actor } from './model.ts';
import type { Store } from './store.ts';
import { nameOf } from './tree-rows.ts';

/** Head of the selected actor: name, state, duration, parent, facts and actions. */
export function Head({ store, actor }: { readonly store: Store; readonly actor: Actor }) {
  const { tone, shape } = lookOf(actor);
  const { head, tail } = nameOf(actor);
  const leaf = store.chart.value?.nodes.findLast((node) => actor.states.includes(node.id) && node.description !== '');
  const parent = actor.parent === null ? undefined : store.travel.shown.value.byId.get(actor.parent);
  const isOurs = store.app.server.kind !== 'inspector';
  const isPresent = store.travel.moment.value === null && store.opened.value === null;
  return (
    <header class="actor-head">
      <a class="button back" href="#/actors" aria-label="All actors">
        ‹
      </a>
      <div class="who">
        <h1 title={actor.title}>{tail}</h1>
        <p class="quiet cut">{actor.machine}</p>
      </div>
      <p class={`state ${tone}`}>
        <Mark tone={tone} shape={shape} />
        <b class="cut">{fullState(actor.states)}</b>
        <span class="age" title={`since ${actor.since.toLocaleString()}`}>
          {actor.ending
            ? `ended after ${duration(actor.ending.at - actor.createdAt.getTime())}`
            : age(store.clock.value - actor.since.getTime())}
        </span>
      </p>
      {isPresent && actor.machine === 'agent-server' && actor.ending === null && isOurs && (
        <Actions key={actor.id} store={store} actor={actor} />
      )}
      <details class="menu" key={`facts of ${actor.id}`}>
        <summary class="button" aria-label="Facts">
          …
        </summary>
        <div>
          <p class="quiet">
            {head && `${head} · `}
            {actor.machine}
            {parent && (
              <>
                {' below '}
                <button type="button" class="link" onClick={() => store.select(parent.id)}>
                  {parent.title}
                </button>
              </>
            )}
          </p>
          {store.chart.value && <p>{store.chart.value.description}</p>}
          {leaf && (
            <p>
              <b>{leaf.label}</b>: {leaf.description}
            </p>
          )}
          <Facts actor={actor} />
        </div>
      </details>
      {actor.ending?.error != null && <p class="crash danger">It crashed: {actor.ending.error}</p>}
      {store.notice.value !== null && (
        <Banner tone="danger">
          <p>{store.notice.value}</p>
          <button type="button" class="plain" aria-label="Dismiss" onClick={() => store.dismiss()}>
            ×
          </button>
        </Banner>
      )}
    </header>
  );
}

/** Whether an agent server has no process. */
const isDownIn = ({ machine, states }: Actor): boolean =>
  machine === 'agent-server' && ['stopped', 'asleep', 'exited'].includes(states[0] ?? '');

function Actions({ store, actor }: { readonly store: Store; readonly actor: Actor }) {
  const asks = store.asksToStop.value;
  const busy = store.busy.value;
  const actions = actionsOn({ state: actor.states[0] ?? '', isRetrying: actor.states.includes('exited.backingOff') });
  const act = (action: Action) => {
    store.askToStop(false);
    void store.act(action, actor.id, actor.title);
  };
  if (asks) {
    return (
      <fieldset class="doings asks" aria-label="Confirm stop">
        <span>Stop this agent server?</span>
        <button type="button" class="danger" onClick={() => act('stop')}>
          Stop it
        </button>
        <button type="button" ref={(element) => element?.focus()} onClick={() => store.askToStop(false)}>
          Keep it
        </button>
      </fieldset>
    );
  }
  return (
    <div class="doings">
      {actions.map((action) => (
        <button
          key={action}
          type="button"
          disabled={busy !== null}
          aria-busy={busy?.action === action}
          onClick={() => (action === 'stop' ? store.askToStop(true) : act(action))}
        >
          {actWords[action].label}
        </button>
      ))}
    </div>
  );
}

function Facts({ actor }: { readonly actor: Actor }) {
  const facts = Object.entries(actor.projection).filter(
    ([name, value]) =>
      name !== 'failureWindowMs' &&
      !(name === 'pid' && isDownIn(actor)) &&
      (!isNothing(value) || (name === 'exitCode' && value === 0)),
  );
  if (facts.length === 0) return null;
  return (
    <dl class="facts" aria-label="Facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{humanName(name)}</dt>
          <dd title={factText(name, value)}>{factText(name, value)}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Whether a fact is empty: counters at zero and missing values would hide the important facts. */
const isNothing = (value: Fact): boolean => value === null || value === '' || value === 0 || value === 'none';
