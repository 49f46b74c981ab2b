import { makeDirectory } from '../../lib/index.ts';
import { LocalPlace, type PlaceSettings, type ReachListener } from '../../places/index.ts';
import { defaults } from '../../protocol/index.ts';
import {
  childEnvironment,
  logFiles,
  orderHandOver,
  removeStaleTemps,
  withOutsideLibraries,
} from '../../supervise/index.ts';
import { compileCacheDirectory } from '../compile-cache.ts';
import { adoptContainer, startContainer, startedContainer } from '../container.ts';
import { logStart } from '../exits.ts';
import type { FactsOf, HubServices, WorkspaceFacts } from '../facts.ts';
import { endRecordedProcesses, reportUnverified } from '../leftovers.ts';
import type { StoredContainer } from '../store.ts';
import { sizeOf } from '../workspace-files.ts';
import { type ProcessSource, processActor } from './process-actor.ts';

const local = new LocalPlace();

/** The `process` actor of a workspace's agent server. */
export function serverProcess(hub: HubServices, factsOf: FactsOf) {
  const compileCache = compileCacheDirectory(hub.environment);
  return processActor(({ workspacePath }) => serverSource(hub, factsOf(workspacePath), compileCache));
}

/** Makes the directory, and removes the half-written files of a killed Hub. */
function prepareLogs(directory: string): void {
  makeDirectory(directory, 0o700);
  removeStaleTemps(directory);
}

function serverSource(hub: HubServices, facts: WorkspaceFacts, compileCache: string | undefined): ProcessSource {
  const { stored, logDirectory } = facts;
  const reportSaveProblem = (error: unknown) => hub.logger.error('the state file could not be written', { error });

  async function inContainer(
    start: { readonly settings: PlaceSettings; readonly container: StoredContainer; readonly marker: string },
    onReach: ReachListener,
  ) {
    const { container, marker } = start;
    const child = await startContainer(hub, facts, start, onReach).catch((error: unknown) => {
      // Another program may use the port of the dashboard: the next start chooses a different port.
      facts.endpoints = {};
      throw error;
    });
    facts.launchDocument = null;
    stored.server = { marker, identity: null, container: startedContainer(container, child) };
    stored.lastStartedAt = new Date().toISOString();
    hub.save().catch(reportSaveProblem);
    return child;
  }

  return {
    async spawn(onReach) {
      prepareLogs(logDirectory);
      logStart(hub, facts);
      facts.stderrFrom = sizeOf(logFiles(logDirectory).stderr);
      const workspacePath = stored.canonicalWorkspacePath;
      const marker = facts.marker ?? '';
      const { container } = stored.server ?? {};
      if (facts.container && container) return inContainer({ settings: facts.container, container, marker }, onReach);
      const child = await local.start({
        command: hub.agentServer.command,
        args: [...hub.agentServer.args, '--managed', '--workspace', workspacePath],
        cwd: workspacePath,
        env: childEnvironment(withOutsideLibraries(hub.environment), {
          pass: facts.passEnvironment,
          add: { ORATORIO_HOME: hub.home, ...(compileCache !== undefined && { NODE_COMPILE_CACHE: compileCache }) },
        }),
        stdin: `${facts.launchDocument ?? ''}\n`,
        logDirectory,
        marker,
        logBytes: defaults.supervise.logBytes,
      });
      facts.launchDocument = null;
      stored.server = { marker, identity: child.identity };
      stored.lastStartedAt = new Date().toISOString();
      hub.save().catch(reportSaveProblem);
      return child;
    },
    adopt() {
      const { container, marker = '' } = stored.server ?? {};
      if (container && !facts.external) {
        facts.stderrFrom = 0;
        prepareLogs(logDirectory);
        return adoptContainer(hub, facts, { marker, container });
      }
      const identity = facts.external ?? stored.server?.identity;
      if (!identity) throw new Error('there is no process to adopt');
      facts.stderrFrom = 0;
      prepareLogs(logDirectory);
      return local.adopt({
        identity,
        logDirectory,
        marker: facts.external ? '' : (stored.server?.marker ?? ''),
        logBytes: defaults.supervise.logBytes,
        isWatched: () => facts.contact.isOpen,
      });
    },
    beforeTermination(handOver) {
      const incarnation = stored.server?.marker;
      if (!handOver || !incarnation) return;
      try {
        orderHandOver(hub.home, stored.canonicalWorkspacePath, { incarnation, ...handOver });
      } catch (error) {
        // A signal without an order suspends turns, too.
        const workspacePath = stored.canonicalWorkspacePath;
        hub.logger.warn('could not pass the reason of a stop to the agent server', { workspacePath, error });
      }
    },
    watch: (onEnded) => facts.contact.listen({ onEnded }),
    sweep: () => endRecordedProcesses(hub, stored),
    onUnverified: (pid) => reportUnverified(hub.logger, pid),
    onGone() {
      stored.server = null;
      stored.external = false;
      facts.external = null;
      stored.lastExitedAt = new Date().toISOString();
      hub.save().catch(reportSaveProblem);
    },
  };
}
