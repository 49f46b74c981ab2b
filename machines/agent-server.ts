/**
 * One workspace's agent server. The top-level states are the six of specification §3; anything finer is a child
 * state. Every workspace runs this machine as a root actor of its own, so one workspace's fault stays its own.
 *
 * Detailed operation
 * 1. `ENSURE` leads from rest to `starting`. The `prepare` actor looks who owns the workspace and plans ports.
 * 2. The sidecar, when one is requested, must be running before the server is spawned. A server that already runs is
 *    adopted at once, with its sidecar beside it. A request for another sidecar does not disturb a run: it is pending
 *    until a `RESTART` names it. After a failed replacement a start without a request returns to the proven sidecar.
 * 3. The `process` actor lives from spawning until the process group is verified empty, whatever state the machine
 *    is in meanwhile; its events carry the incarnation, and those of an earlier one are ignored.
 * 4. `readiness` must answer before `running` is entered. `liveness` then probes; three failures in a row make it
 *    `unhealthy`, one success makes it `running` again, and a spent grace period makes it stop and start anew.
 * 5. An exit without a stop request is counted. The policy decides between back-off, rest, and giving up.
 * 6. A stop is polite, then forceful, and does not end before the group is empty. Every death is emitted once.
 */
import { not } from 'xstate';
import { agentServerSetup, initialContext } from './agent-server-setup.ts';
import { failureOf } from './process-events.ts';

export const agentServerMachine = agentServerSetup.createMachine({
  id: 'agent-server',
  description: "Supervises one workspace's agent server and its sidecar.",
  context: ({ input }) => initialContext(input),
  initial: 'stopped',
  on: {
    'PROXY.RUNNING': { actions: ['recordSidecarRunning', 'emitSidecarRunning'] },
    'PROXY.UNHEALTHY': { actions: ['recordSidecarUnhealthy', 'emitSidecarUnhealthy'] },
    'PROXY.EXITED': { actions: ['recordSidecarExit', 'emitSidecarExited'] },
    'PROXY.STOPPED': { actions: ['emitSidecarExited', 'clearSidecar', 'releaseSidecar'] },
  },
  states: {
    stopped: {
      description: 'Nothing runs, and nothing is wanted.',
      tags: ['settled'],
      entry: 'resetToStopped',
      on: {
        ENSURE: { target: 'starting', actions: ['selectSidecar', 'resetForManualStart'] },
        RESTART: { target: 'starting', actions: ['selectSidecar', 'resetForManualStart'] },
        ADOPT: { target: 'starting', actions: ['selectSidecar', 'resetForManualStart'] },
      },
    },
    starting: {
      description: 'On the way up: not usable yet.',
      entry: 'beginIncarnation',
      initial: 'clearing',
      after: {
        startDeadline: [
          { guard: not('hasProcess'), target: 'exited', actions: ['recordStartTimeout', 'stopSidecar'] },
          { guard: not('isOurs'), target: 'exited', actions: ['recordStartTimeout', 'clearProcess', 'releaseProcess'] },
          { target: '.aborting', actions: 'recordStartTimeout' },
        ],
      },
      on: {
        STOP: [
          { guard: not('isOurs'), target: 'stopping', actions: ['stopAsAsked', 'clearProcess', 'releaseProcess'] },
          { target: 'stopping', actions: 'stopAsAsked' },
        ],
        ENSURE: { actions: 'recordPendingSidecar' },
        RESTART: [
          {
            guard: not('isOurs'),
            target: 'stopping',
            actions: [
              'selectSidecar',
              { type: 'stopBecause', params: { reason: 'restart' } },
              'clearProcess',
              'releaseProcess',
            ],
          },
          { target: 'stopping', actions: ['selectSidecar', { type: 'stopBecause', params: { reason: 'restart' } }] },
        ],
        'PROCESS.EXITED': [
          { guard: 'lostLockRace', target: '.preparing', actions: ['releaseProcess', 'retryAfterLockRace'] },
          {
            guard: 'isThisIncarnation',
            target: 'exited',
            actions: ['recordExit', 'recordFailureTime', 'releaseProcess'],
          },
        ],
        'PROCESS.REFUSED': {
          guard: 'isThisIncarnation',
          target: 'exited',
          actions: ['recordSpawnFailure', 'recordFailureTime', 'releaseProcess'],
        },
      },
      states: {
        clearing: {
          description: 'A sidecar that was asked to be another one has to go first.',
          always: [{ guard: 'mustReplaceSidecar', target: 'replacingProxy' }, { target: 'preparing' }],
        },
        replacingProxy: {
          description: 'Waiting for the old sidecar to be gone.',
          entry: 'stopSidecar',
          on: {
            'PROXY.STOPPED': {
              target: 'preparing',
              actions: ['emitSidecarExited', 'clearSidecar', 'releaseSidecar'],
            },
          },
        },
        preparing: {
          description: 'Who owns the workspace lock? Which ports? The intention is on disk before anything is spawned.',
          invoke: {
            id: 'prepare',
            src: 'prepare',
            input: ({ context }) => ({
              workspacePath: context.workspacePath,
              incarnation: context.incarnation,
              mayStart: context.mayStart,
              sidecar: context.sidecar,
            }),
            onDone: [
              {
                guard: { type: 'needsSidecar', params: ({ event }) => event.output },
                target: 'proxying',
                actions: [
                  { type: 'recordPreparation', params: ({ event }) => event.output },
                  { type: 'emitPorts', params: ({ event }) => event.output },
                  { type: 'emitStarting', params: ({ event }) => event.output },
                ],
              },
              {
                description: 'A live server is taken over at once, and its sidecar beside it: neither is left alone.',
                guard: { type: 'adoptsSidecar', params: ({ event }) => event.output },
                target: 'spawning',
                actions: [{ type: 'recordPreparation', params: ({ event }) => event.output }, 'startSidecar'],
              },
              {
                target: 'spawning',
                actions: [
                  { type: 'recordPreparation', params: ({ event }) => event.output },
                  { type: 'emitPorts', params: ({ event }) => event.output },
                  { type: 'emitStarting', params: ({ event }) => event.output },
                ],
              },
            ],
            onError: {
              target: '#agent-server.exited',
              actions: { type: 'recordFailure', params: ({ event }) => failureOf(event.error) },
            },
          },
        },
        proxying: {
          description: 'The sidecar must be ready before the server that uses it.',
          entry: 'startSidecar',
          on: {
            'PROXY.RUNNING': { target: 'spawning', actions: ['recordSidecarRunning', 'emitSidecarRunning'] },
            'PROXY.EXITED': [
              {
                guard: 'sidecarGaveUp',
                target: '#agent-server.exited',
                actions: ['recordSidecarExit', 'emitSidecarExited', 'recordSidecarFailure'],
              },
              { actions: ['recordSidecarExit', 'emitSidecarExited'] },
            ],
          },
        },
        spawning: {
          description: 'The operating system has been asked for the process.',
          entry: ['recordSpawnRequest', 'spawnProcess'],
          on: {
            'PROCESS.SPAWNED': { guard: 'isThisIncarnation', target: 'probing', actions: 'recordPid' },
          },
        },
        probing: {
          description: 'The process is there. It is ready when the WebSocket answers and holds the workspace lock.',
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
              actions: { type: 'recordReadiness', params: ({ event }) => event.output },
            },
            onError: [
              {
                guard: not('isOurs'),
                target: '#agent-server.exited',
                actions: [
                  { type: 'recordFailure', params: ({ event }) => failureOf(event.error) },
                  'clearProcess',
                  'releaseProcess',
                ],
              },
              {
                target: 'aborting',
                actions: { type: 'recordFailure', params: ({ event }) => failureOf(event.error) },
              },
            ],
          },
        },
        aborting: {
          description: 'The start has failed; the process is killed before anything else happens.',
          initial: 'killing',
          states: {
            killing: {
              description: 'SIGKILL to the group; waiting until it is verified empty.',
              entry: 'killProcess',
              after: { killVerify: { target: 'stuck', actions: 'recordKillTimeout' } },
            },
            stuck: { description: 'Even SIGKILL has not ended it (uninterruptible sleep).', tags: ['settled'] },
          },
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
    running: {
      description: 'Ready and answering.',
      tags: ['settled'],
      entry: ['recordRunning', 'emitRunning'],
      invoke: {
        id: 'liveness',
        src: 'liveness',
        input: ({ context }) => ({ workspacePath: context.workspacePath, incarnation: context.incarnation }),
      },
      on: {
        ENSURE: { actions: ['recordPendingSidecar', 'restartSidecar'] },
        RESTART: {
          guard: 'isOurs',
          target: 'stopping',
          actions: ['selectSidecar', { type: 'stopBecause', params: { reason: 'restart' } }],
        },
        STOP: { guard: 'isOurs', target: 'stopping', actions: 'stopAsAsked' },
        'PROBE.PASSED': [
          {
            guard: 'exceedsIdleLimit',
            target: 'stopping',
            actions: { type: 'stopBecause', params: { reason: 'idle' } },
          },
          { guard: 'isThisIncarnation', actions: 'resetProbeFailures' },
        ],
        'PROBE.FAILED': [
          { guard: 'reachesFailureThreshold', target: 'unhealthy', actions: 'recordUnhealthy' },
          { guard: 'isThisIncarnation', actions: 'countProbeFailure' },
        ],
        'PROCESS.EXITED': {
          guard: 'isThisIncarnation',
          target: 'exited',
          actions: ['recordExit', 'recordFailureTime', 'releaseProcess'],
        },
      },
    },
    unhealthy: {
      description: 'Alive but not answering. It may recover; after the grace period it is restarted.',
      tags: ['settled'],
      entry: 'emitUnhealthy',
      invoke: {
        id: 'liveness',
        src: 'liveness',
        input: ({ context }) => ({ workspacePath: context.workspacePath, incarnation: context.incarnation }),
      },
      after: {
        unhealthyGrace: {
          guard: 'mayRestart',
          target: 'stopping',
          actions: { type: 'stopBecause', params: { reason: 'unhealthy' } },
        },
      },
      on: {
        'PROBE.PASSED': { guard: 'isThisIncarnation', target: 'running', actions: 'recordRecovery' },
        'PROBE.FAILED': { guard: 'isThisIncarnation', actions: 'countProbeFailure' },
        ENSURE: {
          guard: 'isOurs',
          target: 'stopping',
          actions: ['selectSidecar', { type: 'stopBecause', params: { reason: 'restart' } }],
        },
        RESTART: {
          guard: 'isOurs',
          target: 'stopping',
          actions: ['selectSidecar', { type: 'stopBecause', params: { reason: 'restart' } }],
        },
        STOP: { guard: 'isOurs', target: 'stopping', actions: 'stopAsAsked' },
        'PROCESS.EXITED': {
          guard: 'isThisIncarnation',
          target: 'exited',
          actions: ['recordExit', 'recordFailureTime', 'releaseProcess'],
        },
      },
    },
    stopping: {
      description: 'On the way down: politely, then by force, and never done before the process group is empty.',
      initial: 'choosing',
      on: {
        ENSURE: { actions: ['selectSidecar', { type: 'stopBecause', params: { reason: 'restart' } }] },
        RESTART: { actions: ['selectSidecar', { type: 'stopBecause', params: { reason: 'restart' } }] },
        STOP: { actions: 'stopAsAsked' },
        'PROCESS.EXITED': [
          {
            guard: 'endsUnhealthyRun',
            target: '.settling',
            actions: ['recordForcedExit', 'recordFailureTime', 'releaseProcess'],
          },
          { guard: 'isThisIncarnation', target: '.settling', actions: ['recordForcedExit', 'releaseProcess'] },
        ],
        'PROCESS.REFUSED': {
          guard: 'isThisIncarnation',
          target: '.settling',
          actions: ['recordSpawnFailure', 'releaseProcess'],
        },
      },
      states: {
        choosing: {
          description: 'Is there a process to stop?',
          always: [{ guard: 'hasProcess', target: 'terminating' }, { target: 'settling' }],
        },
        terminating: {
          description: 'SIGTERM was sent to the group.',
          entry: 'terminateProcess',
          after: { gracefulStop: { target: 'killing' } },
        },
        killing: {
          description: 'SIGKILL was sent to the group.',
          entry: 'killProcess',
          after: { killVerify: { target: 'stuck', actions: 'recordKillTimeout' } },
        },
        stuck: { description: 'Even SIGKILL has not ended it (uninterruptible sleep).', tags: ['settled'] },
        settling: {
          description: 'The server is gone. What follows depends on why it was stopped.',
          always: [
            {
              guard: 'restartFollowsStop',
              target: '#agent-server.starting',
              actions: ['emitStopped', 'resetForManualStart'],
            },
            { guard: 'recoveryExceedsFailureLimit', target: '#agent-server.exited.givenUp' },
            {
              guard: 'recoveryFollowsStop',
              target: '#agent-server.starting',
              actions: ['emitStopped', 'countRecovery'],
            },
            { guard: 'hasSidecar', target: 'stoppingProxy' },
            { target: '#agent-server.stopped', actions: 'emitStopped' },
          ],
        },
        stoppingProxy: {
          description: 'The sidecar goes after the server that used it.',
          entry: 'stopSidecar',
          on: {
            'PROXY.STOPPED': {
              target: 'settling',
              actions: ['emitSidecarExited', 'clearSidecar', 'releaseSidecar'],
            },
          },
        },
      },
    },
    exited: {
      description: 'It ended, or could not be started, without having been asked to stop.',
      tags: ['settled'],
      initial: 'deciding',
      on: {
        ENSURE: { target: 'starting', actions: ['restoreProvenSidecar', 'selectSidecar', 'resetForManualStart'] },
        RESTART: { target: 'starting', actions: ['restoreProvenSidecar', 'selectSidecar', 'resetForManualStart'] },
        STOP: { target: 'stopping', actions: 'stopAsAsked' },
      },
      states: {
        deciding: {
          description: 'Restart, rest, or give up?',
          always: [
            { guard: 'mustNotRestart', target: 'resting' },
            { guard: 'exceedsFailureLimit', target: 'givenUp' },
            { target: 'backingOff' },
          ],
        },
        backingOff: {
          description: 'A restart is due after a pause that doubles with every failure.',
          entry: ['planRestart', 'emitExited'],
          after: { backoff: { target: '#agent-server.starting' } },
          on: {
            ENSURE: {
              target: '#agent-server.starting',
              actions: ['restoreProvenSidecar', 'selectSidecar', 'permitStart'],
            },
          },
        },
        resting: {
          description: 'No restart: the policy says so, or trying again cannot help.',
          entry: ['clearRestartDelay', 'emitExited', 'stopSidecar'],
        },
        givenUp: {
          description: 'Too many failures in too short a time. An operator has to start it again.',
          entry: ['recordGivingUp', 'emitExited', 'stopSidecar'],
        },
      },
    },
  },
});
