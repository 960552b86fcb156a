-- The health of a BCSNetPool or a BCSNetIPClaim for Argo CD. A pool without free addresses is healthy: it is as its spec says.
local health = {status = "Progressing", message = "the controller has not reported yet"}
if obj.metadata.deletionTimestamp ~= nil then
  health.message = "it is being deleted"
  return health
end
local status = obj.status
if status == nil or status.conditions == nil then
  return health
end
if status.observedGeneration ~= nil and obj.metadata.generation ~= nil and status.observedGeneration < obj.metadata.generation then
  health.message = "the controller has not seen the last change yet"
  return health
end
local progressing = {Rebuilding = true, Terminating = true, ObjectsFailing = true, Releasing = true}
for _, condition in ipairs(status.conditions) do
  if condition.type == "Conflict" and condition.status == "True" then
    return {status = "Degraded", message = condition.message}
  end
end
for _, condition in ipairs(status.conditions) do
  if condition.type == "Ready" then
    health.message = condition.message
    if condition.status == "True" then
      health.status = "Healthy"
    elseif condition.reason == "Cordoned" then
      health.status = "Suspended"
    elseif condition.status == "False" and not progressing[condition.reason] then
      health.status = "Degraded"
    end
  end
end
return health
