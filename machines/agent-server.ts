/**
 * One workspace's agent server. The top-level states are the specification's six (§3); anything finer is a child
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
import { agentServerSetup, atRest } from './agent-server-setup.ts';
import { failureOf } from './process-events.ts';

export const agentServerMachine = agentServerSetup.createMachine({
  id: 'agent-server',
  description: "Supervises one workspace's agent server and its sidecar.",
  context: ({ input }) => atRest(input),
  initial: 'stopped',
  on: {
    'PROXY.RUNNING': { actions: ['noteProxyRunning', 'announceProxyRunning'] },
    'PROXY.UNHEALTHY': { actions: ['noteProxyUnhealthy', 'announceProxyUnhealthy'] },
    'PROXY.EXITED': { actions: ['noteProxyExited', 'announceProxyExited'] },
    'PROXY.STOPPED': { actions: ['announceProxyExited', 'noteProxyStopped', 'releaseProxy'] },
  },
  states: {
    stopped: {
      description: 'Nothing runs, and nothing is wanted.',
      tags: ['settled'],
      entry: 'clearForRest',
      on: {
        ENSURE: { target: 'starting', actions: ['chooseSidecar', 'takeOperatorsStart'] },
        RESTART: { target: 'starting', actions: ['chooseSidecar', 'takeOperatorsStart'] },
        ADOPT: { target: 'starting', actions: ['chooseSidecar', 'takeOperatorsStart'] },
      },
    },
    starting: {
      description: 'On the way up: not usable yet.',
      entry: 'beginIncarnation',
      initial: 'clearing',
      after: {
        startDeadline: [
          { guard: not('hasProcess'), target: 'exited', actions: ['blameDeadline', 'stopProxy'] },
          { guard: not('isOurs'), target: 'exited', actions: ['blameDeadline', 'letGo', 'releaseProcess'] },
          { target: '.aborting', actions: 'blameDeadline' },
        ],
      },
      on: {
        STOP: [
          { guard: not('isOurs'), target: 'stopping', actions: ['stopAsAsked', 'letGo', 'releaseProcess'] },
          { target: 'stopping', actions: 'stopAsAsked' },
        ],
        ENSURE: { actions: 'notePendingSidecar' },
        RESTART: [
          {
            guard: not('isOurs'),
            target: 'stopping',
            actions: [
              'chooseSidecar',
              { type: 'stopBecause', params: { reason: 'restart' } },
              'letGo',
              'releaseProcess',
            ],
          },
          { target: 'stopping', actions: ['chooseSidecar', { type: 'stopBecause', params: { reason: 'restart' } }] },
        ],
        'PROCESS.EXITED': [
          { guard: 'lostTheLockRace', target: '.preparing', actions: ['releaseProcess', 'beginAnotherTry'] },
          {
            guard: 'isThisIncarnation',
            target: 'exited',
            actions: ['keepExit', 'countFailureTime', 'releaseProcess'],
          },
        ],
        'PROCESS.REFUSED': {
          guard: 'isThisIncarnation',
          target: 'exited',
          actions: ['keepRefusal', 'countFailureTime', 'releaseProcess'],
        },
      },
      states: {
        clearing: {
          description: 'A sidecar that was asked to be another one has to go first.',
          always: [{ guard: 'mustReplaceProxy', target: 'replacingProxy' }, { target: 'preparing' }],
        },
        replacingProxy: {
          description: 'Waiting for the old sidecar to be gone.',
          entry: 'stopProxy',
          on: {
            'PROXY.STOPPED': {
              target: 'preparing',
              actions: ['announceProxyExited', 'noteProxyStopped', 'releaseProxy'],
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
                guard: { type: 'needsProxy', params: ({ event }) => event.output },
                target: 'proxying',
                actions: [
                  { type: 'keepPreparation', params: ({ event }) => event.output },
                  { type: 'announcePorts', params: ({ event }) => event.output },
                  { type: 'announceStarting', params: ({ event }) => event.output },
                ],
              },
              {
                description: 'A live server is taken over at once, and its sidecar beside it: neither is left alone.',
                guard: { type: 'adoptsProxy', params: ({ event }) => event.output },
                target: 'spawning',
                actions: [{ type: 'keepPreparation', params: ({ event }) => event.output }, 'startProxy'],
              },
              {
                target: 'spawning',
                actions: [
                  { type: 'keepPreparation', params: ({ event }) => event.output },
                  { type: 'announcePorts', params: ({ event }) => event.output },
                  { type: 'announceStarting', params: ({ event }) => event.output },
                ],
              },
            ],
            onError: {
              target: '#agent-server.exited',
              actions: { type: 'blameActor', params: ({ event }) => failureOf(event.error) },
            },
          },
        },
        proxying: {
          description: 'The sidecar must be ready before the server that uses it.',
          entry: 'startProxy',
          on: {
            'PROXY.RUNNING': { target: 'spawning', actions: ['noteProxyRunning', 'announceProxyRunning'] },
            'PROXY.EXITED': [
              {
                guard: 'proxyGaveUp',
                target: '#agent-server.exited',
                actions: ['noteProxyExited', 'announceProxyExited', 'blameProxy'],
              },
              { actions: ['noteProxyExited', 'announceProxyExited'] },
            ],
          },
        },
        spawning: {
          description: 'The operating system has been asked for the process.',
          entry: ['expectProcess', 'spawnProcess'],
          on: {
            'PROCESS.SPAWNED': { guard: 'isThisIncarnation', target: 'probing', actions: 'keepPid' },
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
              actions: { type: 'noteReady', params: ({ event }) => event.output },
            },
            onError: [
              {
                guard: not('isOurs'),
                target: '#agent-server.exited',
                actions: [
                  { type: 'blameActor', params: ({ event }) => failureOf(event.error) },
                  'letGo',
                  'releaseProcess',
                ],
              },
              {
                target: 'aborting',
                actions: { type: 'blameActor', params: ({ event }) => failureOf(event.error) },
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
              after: { killVerify: { target: 'stuck', actions: 'blameUnkillable' } },
            },
            stuck: { description: 'Even SIGKILL has not ended it (uninterruptible sleep).', tags: ['settled'] },
          },
          on: {
            'PROCESS.EXITED': {
              guard: 'isThisIncarnation',
              target: '#agent-server.exited',
              actions: ['keepForcedExit', 'countFailureTime', 'releaseProcess'],
            },
          },
        },
      },
    },
    running: {
      description: 'Ready and answering.',
      tags: ['settled'],
      entry: ['noteRunning', 'announceRunning'],
      invoke: {
        id: 'liveness',
        src: 'liveness',
        input: ({ context }) => ({ workspacePath: context.workspacePath, incarnation: context.incarnation }),
      },
      on: {
        ENSURE: { actions: ['notePendingSidecar', 'reviveProxy'] },
        RESTART: {
          guard: 'isOurs',
          target: 'stopping',
          actions: ['chooseSidecar', { type: 'stopBecause', params: { reason: 'restart' } }],
        },
        STOP: { guard: 'isOurs', target: 'stopping', actions: 'stopAsAsked' },
        'PROBE.PASSED': [
          {
            guard: 'isIdleTooLong',
            target: 'stopping',
            actions: { type: 'stopBecause', params: { reason: 'idle' } },
          },
          { guard: 'isThisIncarnation', actions: 'forgetProbeFailures' },
        ],
        'PROBE.FAILED': [
          { guard: 'isLastStraw', target: 'unhealthy', actions: 'noteUnhealthy' },
          { guard: 'isThisIncarnation', actions: 'countProbeFailure' },
        ],
        'PROCESS.EXITED': {
          guard: 'isThisIncarnation',
          target: 'exited',
          actions: ['keepExit', 'countFailureTime', 'releaseProcess'],
        },
      },
    },
    unhealthy: {
      description: 'Alive but not answering. It may recover; after the grace period it is restarted.',
      tags: ['settled'],
      entry: 'announceUnhealthy',
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
        'PROBE.PASSED': { guard: 'isThisIncarnation', target: 'running', actions: 'noteRecovery' },
        'PROBE.FAILED': { guard: 'isThisIncarnation', actions: 'countProbeFailure' },
        ENSURE: {
          guard: 'isOurs',
          target: 'stopping',
          actions: ['chooseSidecar', { type: 'stopBecause', params: { reason: 'restart' } }],
        },
        RESTART: {
          guard: 'isOurs',
          target: 'stopping',
          actions: ['chooseSidecar', { type: 'stopBecause', params: { reason: 'restart' } }],
        },
        STOP: { guard: 'isOurs', target: 'stopping', actions: 'stopAsAsked' },
        'PROCESS.EXITED': {
          guard: 'isThisIncarnation',
          target: 'exited',
          actions: ['keepExit', 'countFailureTime', 'releaseProcess'],
        },
      },
    },
    stopping: {
      description: 'On the way down: politely, then by force, and never done before the process group is empty.',
      initial: 'choosing',
      on: {
        ENSURE: { actions: ['chooseSidecar', { type: 'stopBecause', params: { reason: 'restart' } }] },
        RESTART: { actions: ['chooseSidecar', { type: 'stopBecause', params: { reason: 'restart' } }] },
        STOP: { actions: 'stopAsAsked' },
        'PROCESS.EXITED': [
          {
            guard: 'isThisIncarnationUnhealthy',
            target: '.settling',
            actions: ['keepForcedExit', 'countFailureTime', 'releaseProcess'],
          },
          { guard: 'isThisIncarnation', target: '.settling', actions: ['keepForcedExit', 'releaseProcess'] },
        ],
        'PROCESS.REFUSED': {
          guard: 'isThisIncarnation',
          target: '.settling',
          actions: ['keepRefusal', 'releaseProcess'],
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
          after: { killVerify: { target: 'stuck', actions: 'blameUnkillable' } },
        },
        stuck: { description: 'Even SIGKILL has not ended it (uninterruptible sleep).', tags: ['settled'] },
        settling: {
          description: 'The server is gone. What follows depends on why it was stopped.',
          always: [
            {
              guard: 'restartFollowsStop',
              target: '#agent-server.starting',
              actions: ['announceStopped', 'takeOperatorsStart'],
            },
            { guard: 'recoveryIsHopeless', target: '#agent-server.exited.givenUp' },
            {
              guard: 'recoveryFollowsStop',
              target: '#agent-server.starting',
              actions: ['announceStopped', 'countRecovery'],
            },
            { guard: 'hasProxy', target: 'stoppingProxy' },
            { target: '#agent-server.stopped', actions: 'announceStopped' },
          ],
        },
        stoppingProxy: {
          description: 'The sidecar goes after the server that used it.',
          entry: 'stopProxy',
          on: {
            'PROXY.STOPPED': {
              target: 'settling',
              actions: ['announceProxyExited', 'noteProxyStopped', 'releaseProxy'],
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
        ENSURE: { target: 'starting', actions: ['returnToProvenSidecar', 'chooseSidecar', 'takeOperatorsStart'] },
        RESTART: { target: 'starting', actions: ['returnToProvenSidecar', 'chooseSidecar', 'takeOperatorsStart'] },
        STOP: { target: 'stopping', actions: 'stopAsAsked' },
      },
      states: {
        deciding: {
          description: 'Restart, rest, or give up?',
          always: [
            { guard: 'restsForGood', target: 'resting' },
            { guard: 'gaveUp', target: 'givenUp' },
            { target: 'backingOff' },
          ],
        },
        backingOff: {
          description: 'A restart is due after a pause that doubles with every failure.',
          entry: ['planRestart', 'announceExited'],
          after: { backoff: { target: '#agent-server.starting' } },
          on: {
            ENSURE: {
              target: '#agent-server.starting',
              actions: ['returnToProvenSidecar', 'chooseSidecar', 'skipTheWait'],
            },
          },
        },
        resting: {
          description: 'No restart: the policy says so, or trying again cannot help.',
          entry: ['forgetPlan', 'announceExited', 'stopProxy'],
        },
        givenUp: {
          description: 'Too many failures in too short a time. An operator has to start it again.',
          entry: ['explainGivingUp', 'announceExited', 'stopProxy'],
        },
      },
    },
  },
});
