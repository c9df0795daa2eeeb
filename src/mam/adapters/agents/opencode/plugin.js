// A plugin that opencode loads: it reports what opencode's sessions do, as payloads in the spool. A file is
// named <session>.<pid of opencode>.<unique>.json. A failure must not disturb opencode: the plugin prints
// nothing and throws nothing.
import { renameSync, unlinkSync, writeFileSync } from "node:fs"

// mam reads at most this much of a payload, and the plugin reports at most this much of a message.
const LARGEST = 4 * 1024 * 1024
const LONGEST_MESSAGE = 500

export const mam = async () => {
  const owner = process.env.MAM_SESSION
  const spool = process.env.MAM_SPOOL
  if (!owner || !spool) return {}

  // The parent of each session that a subagent works in, the last reported status of each session, and the
  // permissions and questions that nobody has answered yet.
  const parents = new Map()
  const reported = new Map()
  const open = new Map()
  // The session with the last prompt. Another session may still work in the background, and end.
  let current
  let count = 0

  const write = (payload) => {
    let body = JSON.stringify(payload)
    if (Buffer.byteLength(body) > LARGEST) body = JSON.stringify({ ...payload, prompt: undefined })
    // mam reads files of the same millisecond in the order of their names.
    const name = `${owner}.${process.pid}.${Date.now()}-${String(count++).padStart(8, "0")}`
    const hidden = `${spool}/.${name}.tmp`
    try {
      writeFileSync(hidden, body, { mode: 0o600, flag: "wx" })
      renameSync(hidden, `${spool}/${name}.json`)
    } catch {
      unlinkSync(hidden)
    }
  }

  const report = (event, session, facts) => write({ agent: "opencode", event, session, ...facts })

  const root = (session) => {
    for (let depth = 0; parents.has(session) && depth < 100; depth++) session = parents.get(session)
    return session
  }

  // Before the first prompt, a session that does something is the resumed one. A prompt for a subagent may come
  // before the plugin knows its parent.
  const isCurrent = (session) => !current || session === root(current)

  // A question of a subagent counts for the session that the subagent works for.
  const ask = (kind, properties) => {
    const session = root(properties.sessionID)
    open.set(properties.id, { kind, session })
    const facts = { waiting_for: kind, tool: cut(properties.permission), what: cut(properties.patterns?.join(" ")) }
    if (isCurrent(session)) report("asked", session, facts)
  }

  const reply = (properties) => {
    const session = root(properties.sessionID)
    open.delete(properties.requestID)
    const unanswered = [...open.values()].filter((request) => request.session === session)
    if (isCurrent(session)) report("replied", session, { waiting_for: unanswered.pop()?.kind })
  }

  const cut = (text) => (typeof text === "string" ? text.slice(0, LONGEST_MESSAGE) : undefined)

  // opencode announces the status many times in a turn; the plugin reports only a change.
  const reportStatus = (session, status) => {
    if (parents.has(session) || !isCurrent(session)) return
    if (status.type === "idle") open.clear()
    const key = status.type === "retry" ? `retry ${status.attempt}` : status.type
    if (reported.get(session) === key) return
    reported.set(session, key)
    report("session.status", session, {
      status: status.type,
      reason: cut(status.action?.reason),
      message: cut(status.message),
    })
  }

  const rememberParent = (info) => {
    if (info?.id && info.parentID) parents.set(info.id, info.parentID)
  }

  const handle = {
    "session.created": (properties) => {
      rememberParent(properties.info)
      if (properties.info.parentID) return
      current = properties.info.id
      report("session.created", properties.info.id, { title: cut(properties.info.title) })
    },
    "session.updated": (properties) => rememberParent(properties.info),
    "session.status": (properties) => reportStatus(properties.sessionID, properties.status),
    "session.idle": (properties) => reportStatus(properties.sessionID, { type: "idle" }),
    "session.error": (properties) => {
      if (!properties.sessionID || parents.has(properties.sessionID) || !isCurrent(properties.sessionID)) return
      reported.delete(properties.sessionID)
      const message = properties.error?.data?.message ?? properties.error?.name
      report("session.error", properties.sessionID, { message: cut(message) })
    },
    "permission.asked": (properties) => ask("permission", properties),
    "permission.replied": reply,
    "question.asked": (properties) => ask("question", properties),
    "question.replied": reply,
    "question.rejected": reply,
  }

  return {
    event: async ({ event }) => {
      try {
        handle[event.type]?.(event.properties)
      } catch {}
    },
    "chat.message": async (input, output) => {
      try {
        if (parents.has(input.sessionID)) return
        const texts = output.parts.filter((part) => part.type === "text" && !part.synthetic)
        current = input.sessionID
        reported.delete(current)
        report("chat.message", input.sessionID, { prompt: texts.map((part) => part.text).join("\n") })
      } catch {}
    },
  }
}
