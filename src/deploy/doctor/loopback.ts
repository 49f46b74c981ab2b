/** Whether only this host reaches what is published at `host`. Empty is every address. */
export const isLoopback = (host: string): boolean => /^(?:127\.|::1$|\[::1\]$|localhost$)/.test(host);
