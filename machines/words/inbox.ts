/** Words of the machines of hosts, of the inbox and of its notices. */
import type { MachineWords } from './types.ts';

export const host: MachineWords = {
  guards: {
    isHostKey: 'ssh does not accept the host key of the machine',
    isAuthentication: 'the machine accepts none of the user’s keys',
    isProgram: 'the machine cannot find the program',
    isVersion: 'the versions are incompatible',
  },
  actions: {
    startLink: 'start ssh',
    stopLink: 'end ssh',
    planAttempt: 'choose the pause before the next try',
    recordReason: 'note the reason',
    recordSilence: 'note that no answer came in time',
    resetFailures: 'forget earlier failures',
    countConnection: 'count the connection',
    emitConnected: 'report the connection',
    emitUnreachable: 'report the loss once',
    emitRefused: 'report the refusal',
  },
};

export const move: MachineWords = {
  guards: {
    hasArrived: 'the target has the conversation',
    isCancelled: 'the move goes back',
    isOffered: 'the target may have the parts',
    isRefused: 'the place refuses it',
    mayRelease: 'the target refuses it, early or after a request to cancel',
    isCommitting: 'the target may have the conversation',
  },
  actions: {
    recordOffer: 'note that the target may have the parts',
    recordCommit: 'note that the target may have the conversation',
    recordRequest: 'note that the user cancelled it',
    recordFailure: 'note the reason',
    recordCancel: 'note that it goes back',
    recordAbsence: 'note that the target does not have the conversation',
    resetFailures: 'forget earlier failures',
    planAttempt: 'choose the pause before the next try',
  },
};

export const inboxFeed: MachineWords = {
  guards: {},
  actions: {
    countConnection: 'count the connection',
    resetConnections: 'forget earlier connections',
    resetFailures: 'forget earlier failures',
    planReconnection: 'choose the pause before the next try',
    suspendRequests: 'suspend the requests until the next server',
    withdrawRequests: 'withdraw the requests of the server',
  },
};

export const inboxRequest: MachineWords = {
  guards: {
    isCarried: 'an answer is on its way',
    othersAreCarried: 'another answer is on its way',
    isExpiry: 'no answer came in time',
    isWithdrawal: 'its turn or agent server has ended',
  },
  actions: {
    countAnswer: 'count the answer on its way',
    discountAnswer: 'count one answer less on its way',
    recordDecision: 'note the decision and its author',
  },
};

export const notificationChannel: MachineWords = {
  guards: {
    hasNotices: 'a notice waits',
    isCurrent: 'it is about this notice',
    isLost: 'the service no longer knows the channel',
    mayTryAgain: 'the failure may pass and tries are left',
  },
  actions: {
    addNotice: 'put the notice into the queue',
    removeNotice: 'take the notice out of the queue',
    takeNotice: 'take the oldest notice',
    clearNotice: 'forget the notice',
    countDelivery: 'count the notice as sent',
    dropNotice: 'give the notice up',
    dropAll: 'give every notice up',
    planRetry: 'choose the pause before the next try',
    forgetChannel: 'forget the channel',
  },
};

export const pushSwitch: MachineWords = {
  guards: {
    isUnsupported: 'the browser cannot show notices here',
    isDenied: 'the person has refused',
    isOn: 'the browser is subscribed',
  },
  actions: {
    recordObstacle: 'note why it cannot',
    recordError: 'note the reason',
    clearError: 'forget the last reason',
  },
};
