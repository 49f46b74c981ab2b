import { dollars } from '../../../lib/browser.ts';
import { isCrash, modelWords } from '../../../protocol/browser.ts';
import type { AppServerRecord, ServerExit } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { useResource } from '../../app/resource.ts';
import { href } from '../../app/router.ts';
import { Fact, FactList } from '../../parts/fact-list.tsx';
import { Glyph } from '../../parts/glyphs.tsx';
import { Mark } from '../../parts/icons.tsx';
import { bothTimes, distance } from '../../parts/time.ts';
import { fullState } from '../../parts/tone.ts';
import type { Action } from '../../parts/workspace-acts.ts';
import { Acts } from './acts.tsx';
import { actOf, CrashTable, RemedyStep } from './incident.tsx';
import { Answering, capital, LastTurn } from './words.tsx';
import { withoutSecret } from './workspace.tsx';
import { nameOf, type Shown, troubleOf, type Workspaces } from './workspaces.ts';

interface FactsProps {
  readonly app: App;
  readonly store: Workspaces;
  readonly workspace: Shown;
  readonly act: (action: Action, workspace: Shown) => void;
  readonly onClose: () => void;
}

/** All facts that the Hub has about one workspace, and the actions on it. */
export function Facts({ app, store, workspace, act, onClose }: FactsProps) {
  const { path, look, word, problems, record } = workspace;
  const { host, asOf } = record;
  const trouble = troubleOf(workspace);
  const exits = useResource(
    async (signal) =>
      host === null
        ? app.api.get<readonly ServerExit[]>(`/v1/appservers/exits?${new URLSearchParams({ path })}`, signal)
        : (record.incident?.exits ?? []),
    [path, record.lastExitedAt],
  );
  return (
    <aside class="drawer" aria-label={`Workspace ${path}`}>
      <header>
        <h2 class="cut">{nameOf(workspace)}</h2>
        <button type="button" class="bare" aria-label="Close the facts" onClick={onClose}>
          <Glyph name="close" />
        </button>
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be focusable (WCAG 2.1.1) */}
      <section class="scroll" tabIndex={0} aria-label="Facts">
        <div class="strip">
          <span class={`pill ${look.tone}`}>
            <Mark tone={look.tone} shape={look.shape} /> {capital(word)}
          </span>
          <Acts store={store} workspace={workspace} tabIndex={0} act={act} />
        </div>
        <Problems
          host={host}
          path={record.canonicalWorkspacePath}
          problems={problems}
          otherwise={trouble}
          tone={look.tone}
          act={(action) => act(action, workspace)}
          isBusy={store.busy.value.has(path)}
        />
        <FactList>
          <Fact name="Path">{path}</Fact>
          {asOf !== null && <Fact name="As of">{bothTimes(Date.parse(asOf))}</Fact>}
          <Fact name="Phase">{fullState([record.phase])}</Fact>
          <Fact name="Process">{record.pid ?? '–'}</Fact>
          <Fact name="Version">{record.serverVersion ?? '–'}</Fact>
          {record.agent && record.agent.kind !== 'oratorio' && (
            <Fact name="Agent">
              <Answering record={record} />
            </Fact>
          )}
          {record.model && <Fact name="Model">{modelWords(record.model)}</Fact>}
          {record.lastTurn && (
            <Fact name="Last turn">
              <LastTurn record={record} now={app.now.value} />
            </Fact>
          )}
          {record.costUsd !== null && record.costUsd > 0 && <Fact name="Cost">{dollars(record.costUsd)}</Fact>}
          {record.pendingApprovals > 0 && (
            <Fact name="Waiting">
              <a href={href({ view: 'inbox' })}>{record.pendingApprovals} for approval</a>
            </Fact>
          )}
          <Fact name="Restarts">
            {record.restartCount}
            {record.nextAttemptAt !== null && `, next ${distance(Date.parse(record.nextAttemptAt), app.now.value)}`}
          </Fact>
          <Fact name="Trust">{record.trust}</Fact>
          {host === null && (
            <>
              <Fact name="Chart">
                <a href={href({ view: 'actors', path: [path] })}>Show its state chart</a>
              </Fact>
              <Fact name="Log">
                <a href={href({ view: 'logs', query: { path } })}>Show its log</a>
              </Fact>
            </>
          )}
        </FactList>
        <CrashTable exits={(exits.data.value ?? []).filter(isCrash)} host={host} path={path} />
        <Services record={record} />
        {record.recentStderr && (
          <section class="whole" aria-label="Last output">
            <h3>Last output</h3>
            <pre>{record.recentStderr}</pre>
          </section>
        )}
      </section>
    </aside>
  );
}

interface ProblemsProps {
  readonly host: string | null;
  readonly path: string;
  readonly problems: Shown['problems'];
  /** Error of a workspace without a problem. */
  readonly otherwise: string;
  readonly tone: string;
  readonly act: (action: Action) => void;
  readonly isBusy: boolean;
}

/** Each problem once, with its remedy. */
function Problems({ host, path, problems, otherwise, tone, act, isBusy }: ProblemsProps) {
  if (problems.length === 0) {
    return otherwise === '' ? null : (
      <p class={`trouble ${tone}`} role="status">
        {otherwise}
      </p>
    );
  }
  return (
    <ul class="troubles">
      {problems.map(({ code, what, where, next, remedy }) => (
        <li key={code}>
          <p class={`trouble ${tone}`} role="status">
            {what}
          </p>
          {where !== null && !what.includes(where) && <p class="quiet">{where}</p>}
          <RemedyStep {...{ next, remedy, host, path, isBusy }} start={() => act(actOf(remedy))} />
        </li>
      ))}
    </ul>
  );
}

function Services({ record }: { readonly record: AppServerRecord }) {
  const services = Object.entries(record.serviceStatus);
  if (services.length === 0) return null;
  return (
    <table class="table services">
      <thead>
        <tr>
          <th>Service</th>
          <th>State</th>
          <th>Address</th>
        </tr>
      </thead>
      <tbody>
        {services.map(([name, { state, url, reason }]) => (
          <tr key={name}>
            <td>{name}</td>
            <td>{state}</td>
            <td class="quiet">{reason ?? (url === null ? '' : withoutSecret(url))}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
