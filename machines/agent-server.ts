/**
 * One workspace's agent server. The top-level states are the six of specification §3, and `asleep`, which the API shows as `stopped`;
 * anything finer is a child state. Every workspace runs this machine as a root actor of its own, so one workspace's fault stays its own.
 *
 * Detailed operation
 * 1. `ENSURE` leads from rest to `starting`. The `prepare` actor finds the owner of the workspace lock and reserves ports.
 * 2. The child `sidecar-slot` decides about the sidecar. A requested one must be running before the server is spawned: `SLOT.READY`.
 *    A server that already runs is adopted at once, with its sidecar beside it. A request for another sidecar does not disturb a
 *    run: it is pending until a `RESTART` names it.
 * 3. The `process` actor lives from spawning until the process group is verified empty, in every state of the
 *    machine; its events carry the incarnation, and events of an earlier one are ignored.
 * 4. `readiness` must answer before `running` is entered. `liveness` then probes; several failures in a row make it
 *    `unhealthy`, one success makes it `running` again, and a spent grace period makes it stop and start again.
 *    An idle server whose program was replaced by an upgrade is restarted by the first probe that reports it.
 * 5. An exit without a stop request is counted. The policy decides between back-off, rest, and giving up.
 * 6. A stop sends SIGTERM, then SIGKILL, and does not end before the group is empty. Every death is emitted once.
 * 7. A server in a separate place, such as a container, is started once the place is ready. The state stays when a place stops
 *    answering: the server may still run, so nothing restarts it, and its grace period starts over until the place answers.
 * 8. A managed server without work for longer than the policy allows is asked to sleep. It refuses while it has a client or work, and
 *    runs on. Otherwise it stops listening and ends, and is `asleep`: the Hub starts it again with the first request for it. A server
 *    with a sidecar or in a separate place does not sleep.
 * 9. A request that arrives while a live server is being adopted is applied when the adoption has ended. An `ENSURE`
 *    between the end of the process and the end of its group is applied when the group is empty; one while a server falls asleep is
 *    applied when it sleeps, or when it stays awake.
 */
import { not } from 'xstate';
import { initialContext } from './agent-server-context.ts';
import { agentServerSetup } from './agent-server-setup.ts';
import type { AgentServerContext, Preparation } from './agent-server-types.ts';
import { processFailureOf } from './process-events.ts';
import { killStates, restartStates, terminateStates } from './supervised-process.ts';

const outputIn = ({ event }: { readonly event: { readonly output: Preparation } }) => event.output;
const failureIn = ({ event }: { readonly event: { readonly error: unknown } }) => processFailureOf(event.error);
const onPrepared = [
  { type: 'recordPreparation', params: outputIn },
  { type: 'emitPorts', params: outputIn },
  { type: 'emitStarting', params: outputIn },
  { type: 'emitLostSidecar', params: outputIn },
] as const;
const onUnprepared = [
  { type: 'recordFailure', params: failureIn },
  { type: 'emitLostSidecar', params: failureIn },
] as const;

/** Probes an agent server that was ready once. */
const liveness = {
  id: 'liveness',
  src: 'liveness',
  input: ({ context: { workspacePath, incarnation, policy } }: { readonly context: AgentServerContext }) => ({
    ...{ workspacePath, incarnation, idleStopMs: policy.idleStopMs },
  }),
} as const;

const giveUp = ['recordGivingUp', 'emitExited', 'stopSidecar'] as const;
const afterExit = restartStates(
  { start: '#agent-server.starting', noRestart: 'resting', tooManyFailures: 'givenUp' },
  giveUp,
);

export const agentServerMachine = agentServerSetup.createMachine({
  id: 'agent-server',
  description: "Supervises one workspace's agent server and its sidecar.",
  context: ({ input }) => initialContext(input),
  initial: 'stopped',
  invoke: {
    id: 'sidecarSlot',
    src: 'sidecarSlot',
    input: ({ context }) => ({ workspacePath: context.workspacePath, seed: context.seed }),
  },
  on: {
    'SLOT.CHANGED': { guard: 'changesSlot', actions: 'recordSlot' },
    ENSURE: {
      guard: not('hasProcess'),
      target: '.starting',
      actions: ['selectSidecar', 'resetForManualStart', 'permitStart'],
    },
    RESTART: {
      guard: not('hasExternalServer'),
      target: '.stopping',
      actions: ['selectSidecar', { type: 'recordStopReason', params: { reason: 'restart' } }, 'releaseExternalServer'],
    },
    STOP: {
      guard: not('hasExternalServer'),
      target: '.stopping',
      actions: [{ type: 'recordStopReason', params: ({ event }) => event }, 'releaseExternalServer'],
    },
    'PROBE.FAILED': { guard: 'isThisProcess', actions: 'countProbeFailure' },
    'PLACE.LOST': { guard: 'isThisProcess', actions: ['recordLostPlace', 'emitPlaceLost'] },
    'PLACE.BACK': { guard: 'isThisProcess', actions: ['recordFoundPlace', 'emitPlaceBack'] },
    'PROCESS.ENDING': { guard: 'endsUnasked', actions: 'recordEnding' },
    'PROCESS.EXITED': {
      guard: 'isThisProcess',
      target: '.exited',
      actions: ['recordExit', 'recordFailureTime', 'releaseProcess', 'applyDeferredRequest'],
    },
  },
  states: {
    stopped: {
      description: 'No process runs and none is requested.',
      meta: { kind: 'rests', lane: 'spine', order: 0 },
      tags: ['settled'],
      entry: 'resetToStopped',
      always: { guard: 'isIdleStop', target: 'asleep' },
      on: {
        ADOPT: { target: 'starting', actions: ['selectSidecar', 'restoreFailures', 'forbidStart'] },
        RESTORE: {
          description: 'An earlier supervisor gave it up.',
          target: '#agent-server.exited.givenUp',
          actions: 'restoreGivingUp',
        },
      },
    },
    starting: {
      description: 'From the request to readiness; not usable yet.',
      entry: 'beginIncarnation',
      exit: 'applyDeferredRequest',
      initial: 'clearing',
      after: {
        startDeadline: [
          {
            guard: 'hasNothingToEnd',
            target: 'exited',
            actions: ['recordStartTimeout', 'releaseExternalServer', 'stopSidecar'],
          },
          { target: '.aborting', actions: 'recordStartTimeout' },
        ],
      },
      on: {
        'SLOT.CLEARED': { target: '.preparing' },
        STOP: { guard: 'isAdopting', actions: 'deferRequest' },
        RESTART: { guard: 'isAdopting', actions: 'deferRequest' },
        ENSURE: [
          { guard: 'isAdopting', actions: ['recordPendingSidecar', 'deferRequest'] },
          { actions: 'recordPendingSidecar' },
        ],
        'PROCESS.EXITED': {
          guard: 'lostLockRace',
          target: '.preparing',
          actions: ['releaseProcess', 'retryAfterLockRace'],
        },
        'PROCESS.REFUSED': {
          guard: 'isThisIncarnation',
          target: 'exited',
          actions: ['recordSpawnFailure', 'recordFailureTime', 'releaseProcess'],
        },
      },
      states: {
        clearing: {
          description: 'Asks whether the present sidecar must be replaced first.',
          meta: { kind: 'works', lane: 'spine', order: 1 },
          entry: 'clearSidecarSlot',
          on: { 'SLOT.REPLACING': { target: 'replacingProxy' } },
        },
        replacingProxy: {
          description: 'Waiting until the old sidecar has stopped.',
          meta: { kind: 'works', lane: 'detour', order: 1 },
        },
        preparing: {
          description:
            'Finding the owner of the workspace lock and reserving ports; the intention is on disk before a process is spawned.',
          meta: { kind: 'works', lane: 'spine', order: 2 },
          invoke: {
            id: 'prepare',
            src: 'prepare',
            input: ({ context }) => ({
              workspacePath: context.workspacePath,
              incarnation: context.incarnation,
              mayStart: context.mayStart,
              sidecar: context.slot.inForce,
            }),
            onDone: [
              {
                guard: { type: 'mustReadyPlace', params: outputIn },
                target: 'readyingPlace',
                actions: onPrepared,
              },
              { target: 'proxying', actions: onPrepared },
            ],
            onError: [
              {
                description: 'Another owner has the workspace, or a start before this one came to nothing.',
                guard: { type: 'leavesNothing', params: failureIn },
                target: '#agent-server.stopping.settling',
                actions: onUnprepared,
              },
              { target: '#agent-server.exited', actions: onUnprepared },
            ],
          },
        },
        readyingPlace: {
          description: 'Checking the container engine: it must answer and have the image, which Oratorio never pulls.',
          meta: { kind: 'works', lane: 'detour', order: 4 },
          invoke: {
            id: 'readyPlace',
            src: 'readyPlace',
            input: ({ context }) => ({ workspacePath: context.workspacePath, incarnation: context.incarnation }),
            onDone: { target: 'proxying' },
            onError: { target: '#agent-server.exited', actions: { type: 'recordFailure', params: failureIn } },
          },
        },
        proxying: {
          description: 'Waiting until the sidecar is ready; the server that uses it starts after it.',
          meta: { kind: 'works', lane: 'detour', order: 3 },
          entry: 'startSidecar',
          on: {
            'SLOT.READY': { target: 'spawning' },
            'SLOT.FAILED': { target: '#agent-server.exited', actions: 'recordSidecarFailure' },
          },
        },
        spawning: {
          description: 'Spawn requested; waiting for the operating system.',
          meta: { kind: 'works', lane: 'spine', order: 3 },
          entry: ['recordSpawnRequest', 'spawnProcess'],
          on: {
            'PROCESS.SPAWNED': { guard: 'isThisIncarnation', target: 'probing', actions: 'recordPid' },
          },
        },
        probing: {
          description: 'The process runs; waiting until its WebSocket answers and it holds the workspace lock.',
          meta: { kind: 'works', lane: 'spine', order: 4 },
          invoke: {
            id: 'readiness',
            src: 'readiness',
            input: ({ context }) => ({
              workspacePath: context.workspacePath,
              incarnation: context.incarnation,
              ownership: context.ownership,
            }),
            onDone: {
              target: '#agent-server.running',
              actions: [
                { type: 'recordReadiness', params: ({ event }) => event.output },
                { type: 'emitPorts', params: ({ event }) => event.output },
                'emitRunning',
              ],
            },
            onError: [
              {
                guard: 'hasNothingToEnd',
                target: '#agent-server.exited',
                actions: [{ type: 'recordFailure', params: failureIn }, 'releaseExternalServer'],
              },
              {
                target: 'aborting',
                actions: { type: 'recordFailure', params: failureIn },
              },
            ],
          },
        },
        aborting: {
          description: 'The start has failed; the process must end before anything else happens.',
          initial: 'killing',
          states: { ...killStates, stuck: { ...killStates.stuck, tags: ['settled'] } },
          on: {
            'PROCESS.EXITED': {
              guard: 'isThisIncarnation',
              target: '#agent-server.exited',
              actions: ['recordForcedExit', 'recordFailureTime', 'releaseProcess'],
            },
          },
        },
      },
    },
    asleep: {
      description: 'It was idle for the configured time; the first request starts it again. Nothing runs.',
      meta: { kind: 'rests', lane: 'spine', order: 6 },
      tags: ['settled'],
      entry: 'applyDeferredRequest',
    },
    running: {
      description: 'Ready and answering.',
      meta: { kind: 'serves', lane: 'spine', order: 5 },
      tags: ['settled'],
      entry: ['recordRunning', 'proveSidecar'],
      invoke: liveness,
      on: {
        ENSURE: [
          { guard: 'isEnding', actions: ['recordPendingSidecar', 'deferRequest'] },
          { actions: ['recordPendingSidecar', 'restartSidecar'] },
        ],
        'PROBE.PASSED': [
          {
            guard: 'isSleepDue',
            target: 'stopping.agreeing',
            actions: { type: 'recordStopReason', params: { reason: 'idle' } },
          },
          {
            description: 'An idle server starts again with its new program or workspace.',
            guard: 'isRestartDue',
            target: 'stopping',
            actions: { type: 'recordStopReason', params: { reason: 'restart' } },
          },
          { guard: 'isThisIncarnation', actions: 'resetProbeFailures' },
        ],
        'PROBE.FAILED': {
          guard: 'reachesFailureThreshold',
          target: 'unhealthy',
          actions: ['recordUnhealthy', 'emitUnhealthy'],
        },
      },
    },
    unhealthy: {
      description:
        'Alive but not answering. One passed probe makes it running again; after the grace period it is restarted.',
      meta: { kind: 'unwell', lane: 'exception', order: 5 },
      tags: ['settled'],
      invoke: liveness,
      after: {
        unhealthyGrace: [
          {
            guard: 'mayRestart',
            target: 'stopping',
            actions: { type: 'recordStopReason', params: { reason: 'unhealthy' } },
          },
          {
            description: 'The place does not answer, so the server may still run: the grace period starts over.',
            guard: 'isPlaceLost',
            target: 'unhealthy',
            reenter: true,
          },
        ],
      },
      on: {
        'PROBE.PASSED': { guard: 'isThisIncarnation', target: 'running', actions: ['recordRecovery', 'emitRunning'] },
        ENSURE: {
          guard: not('hasExternalServer'),
          target: 'stopping',
          actions: ['selectSidecar', { type: 'recordStopReason', params: { reason: 'restart' } }],
        },
      },
    },
    stopping: {
      description: 'Ending: SIGTERM, then SIGKILL; over when the process group is empty.',
      initial: 'settling',
      on: {
        ENSURE: [
          { guard: 'isIdleStop', actions: 'deferRequest' },
          { actions: ['selectSidecar', { type: 'recordStopReason', params: { reason: 'restart' } }] },
        ],
        RESTART: { actions: ['selectSidecar', { type: 'recordStopReason', params: { reason: 'restart' } }] },
        STOP: { actions: { type: 'recordStopReason', params: ({ event }) => event } },
        'PROCESS.EXITED': {
          guard: 'isThisIncarnation',
          target: '.settling',
          actions: ['recordForcedExit', 'recordUnhealthyEnd', 'releaseProcess'],
        },
        'PROCESS.REFUSED': {
          guard: 'isThisIncarnation',
          target: '.settling',
          actions: ['recordSpawnFailure', 'releaseProcess'],
        },
      },
      states: {
        ...terminateStates,
        stuck: { ...terminateStates.stuck, tags: ['settled'] },
        agreeing: {
          description: 'Asking the idle server to sleep: it decides, because a request may have reached it just now.',
          meta: { kind: 'works', lane: 'detour', order: 7 },
          invoke: {
            id: 'askToSleep',
            src: 'askToSleep',
            input: ({ context: { workspacePath, incarnation, policy } }) => ({
              ...{ workspacePath, incarnation, idleStopMs: policy.idleStopMs },
            }),
            onDone: [
              {
                guard: { type: 'staysAwake', params: ({ event }) => event.output },
                target: '#agent-server.running',
                actions: ['clearStopReason', 'applyDeferredRequest'],
              },
              { target: 'terminating' },
            ],
            onError: { description: 'The agent server does not answer.', target: 'terminating' },
          },
        },
        settling: {
          description: 'Checks whether a process is left to end; then the reason of the stop decides.',
          meta: { kind: 'works', lane: 'detour', order: 5 },
          always: [
            { guard: 'hasProcess', target: 'terminating' },
            { guard: 'recoveryExceedsFailureLimit', target: '#agent-server.exited.givenUp', actions: giveUp },
            { guard: 'startFollowsStop', target: '#agent-server.starting', actions: ['emitStopped', 'countNextStart'] },
            { guard: 'hasSidecar', target: 'stoppingProxy' },
            { target: '#agent-server.stopped', actions: ['emitStopped', 'resetSidecarSlot'] },
          ],
        },
        stoppingProxy: {
          description: 'Waiting until the sidecar has stopped, after the server that used it.',
          meta: { kind: 'works', lane: 'detour', order: 6 },
          entry: 'stopSidecar',
          on: { 'SLOT.EMPTIED': { target: 'settling' } },
        },
      },
    },
    exited: {
      description: 'It ended without a stop request, or could not be started.',
      tags: ['settled'],
      initial: 'deciding',
      states: {
        ...afterExit,
        backingOff: {
          ...afterExit.backingOff,
          entry: ['planRestart', 'emitExited'],
          on: {
            ENSURE: {
              target: '#agent-server.starting',
              actions: ['selectSidecar', 'permitStart'],
            },
          },
        },
        resting: {
          description: 'No automatic restart: the policy forbids it, or it cannot help.',
          meta: { kind: 'failed', lane: 'exception', order: 2 },
          entry: ['clearRestartDelay', 'emitExited', 'stopSidecar'],
        },
        givenUp: {
          description: 'No automatic restart: too many failures within the window. A user has to start it.',
          meta: { kind: 'failed', lane: 'exception', order: 3 },
        },
      },
    },
  },
});
