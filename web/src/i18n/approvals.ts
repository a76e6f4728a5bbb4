// Texts of the view `approvals`.

export const approvals = {
} as const satisfies Record<string, readonly [en: string, zh: string]>
